/* Functions that the C code of WriteSplit and WriteJoin shares across graphs.
 *
 * A function that returns NULL or -1 has set an exception. Compiled as C++, with Python's and
 * NumPy's headers included. `whole` is the array of the result of a join.
 */

/* The shape of one stream of a join, and its length along the axis. */
typedef struct {
    int ndim;
    const npy_intp *shape;
    npy_intp length;
} joins_block;

/* The slice along the axis that a stream must fill, if `given`; it extends to the end if `stop` is
 * -1. */
typedef struct {
    int given;
    npy_intp start;
    npy_intp stop;
} joins_slot;

/* Refuses negative lengths, with the exception that PyTensor's Alloc raises. */
static inline int joins_check_lengths(int n, const joins_block *blocks)
{
    for (int i = 0; i < n; i++) {
        for (int d = 0; d < blocks[i].ndim; d++) {
            if (blocks[i].shape[d] < 0) {
                PyErr_SetString(PyExc_MemoryError, JOINS_NEGATIVE_LENGTH);
                return -1;
            }
        }
    }
    return 0;
}

/* Sets the lengths of the blocks along the axis, and the shape of the result.
 *
 * In a one-dimensional result, streams of any number of dimensions are stored raveled. */
static inline int joins_measure(int n, joins_block *blocks, int axis, int ndim, npy_intp *dims)
{
    npy_intp total = 0;
    for (int i = 0; i < n; i++) {
        const npy_intp *shape = blocks[i].shape;
        npy_intp length = 1;
        if (ndim == 1) {
            for (int d = 0; d < blocks[i].ndim; d++) length *= shape[d];
        } else {
            for (int d = 0; d < ndim; d++) {
                if (i == 0) {
                    dims[d] = shape[d];
                } else if (d != axis && shape[d] != dims[d]) {
                    PyErr_SetString(PyExc_ValueError, JOINS_SHAPE_MISMATCH);
                    return -1;
                }
            }
            length = shape[axis];
        }
        blocks[i].length = length;
        total += length;
    }
    dims[axis] = total;
    return 0;
}

/* Refuses streams that are not as long as their slices of a tensor of length `total`. */
static inline int joins_check_slots(
    int n, const joins_block *blocks, const joins_slot *slots, npy_intp total)
{
    for (int i = 0; i < n; i++) {
        if (!slots[i].given) continue;
        npy_intp start = total < slots[i].start ? total : slots[i].start;
        npy_intp stop = slots[i].stop < 0 || total < slots[i].stop ? total : slots[i].stop;
        if (blocks[i].length != stop - start) {
            PyErr_SetString(PyExc_ValueError, JOINS_SLOT_MISMATCH);
            return -1;
        }
    }
    return 0;
}

/* Whether an object is an array that owns its memory and has the shape and type of the result. */
static inline int joins_fits(PyObject *object, int ndim, npy_intp *dims, int type_number)
{
    if (object == NULL || !PyArray_CheckExact(object)) return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    return PyArray_NDIM(array) == ndim && PyArray_TYPE(array) == type_number
        && PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA | NPY_ARRAY_CARRAY)
        && PyArray_CompareLists(PyArray_DIMS(array), dims, ndim);
}

static inline PyArrayObject *joins_new_result(int ndim, npy_intp *dims, int type_number)
{
    return (PyArrayObject *)PyArray_EMPTY(ndim, dims, type_number, 0);
}

/* The result of the last call, `*kept`, if nothing else holds it; else a new one, which is kept. */
static inline PyArrayObject *joins_reused_result(
    PyArrayObject **kept, int ndim, npy_intp *dims, int type_number)
{
    PyArrayObject *whole = *kept;
    if (whole != NULL && Py_REFCNT(whole) == 1
            && joins_fits((PyObject *)whole, ndim, dims, type_number)) {
        Py_INCREF(whole);
        return whole;
    }
    Py_CLEAR(*kept);
    whole = joins_new_result(ndim, dims, type_number);
    Py_XINCREF(whole);
    *kept = whole;
    return whole;
}

/* An array in the memory of `whole` that starts at `place`, without a reference to `whole`. */
static inline PyArrayObject *joins_borrowed_part(
    PyArrayObject *whole, char *place, int axis, int ndim, const npy_intp *shape)
{
    Py_INCREF(PyArray_DESCR(whole));
    return (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, PyArray_DESCR(whole), ndim, (npy_intp *)shape,
        axis == 0 ? NULL : PyArray_STRIDES(whole), place,
        axis == 0 ? NPY_ARRAY_CARRAY : NPY_ARRAY_BEHAVED, NULL);
}

/* The same with a reference, which replaces `*part`. */
static inline int joins_set_part(
    PyArrayObject **part, PyArrayObject *whole, char *place, int axis, int ndim,
    const npy_intp *shape)
{
    Py_XDECREF(*part);
    *part = joins_borrowed_part(whole, place, axis, ndim, shape);
    if (*part == NULL) return -1;
    Py_INCREF(whole);
    return PyArray_SetBaseObject(*part, (PyObject *)whole);
}

/* Sets `*memory` to a view of no elements of `whole`, and each part that is not NULL to its part.
 *
 * Takes over the reference to `whole`. */
static inline int joins_hand_out(
    PyArrayObject *whole, int axis, PyArrayObject **memory,
    int n, const joins_block *blocks, PyArrayObject **const *parts)
{
    static const npy_intp none[1] = {0};
    char *place = PyArray_BYTES(whole);
    npy_intp step = PyArray_STRIDES(whole)[axis];
    int failed = joins_set_part(memory, whole, place, 0, 1, none);
    for (int i = 0; i < n && !failed; i++) {
        if (parts[i] != NULL) {
            failed = joins_set_part(
                parts[i], whole, place, axis, blocks[i].ndim, blocks[i].shape);
        }
        place += blocks[i].length * step;
    }
    Py_DECREF(whole);
    return failed ? -1 : 0;
}

/* Whether each written stream is where it belongs in `whole`. */
static inline int joins_are_in_place(
    PyArrayObject *whole, int axis, int n, const joins_block *blocks,
    PyArrayObject *const *streams, const char *written)
{
    char *place = PyArray_BYTES(whole);
    npy_intp step = PyArray_STRIDES(whole)[axis];
    for (int i = 0; i < n; i++) {
        PyArrayObject *stream = streams[i];
        if (written[i]) {
            if (PyArray_TYPE(stream) != PyArray_TYPE(whole) || PyArray_BYTES(stream) != place) {
                return 0;
            }
            if (axis == 0) {
                if (!PyArray_IS_C_CONTIGUOUS(stream)) return 0;
            } else {
                for (int d = 0; d < PyArray_NDIM(stream); d++) {
                    if (PyArray_DIMS(stream)[d] > 1
                            && PyArray_STRIDES(stream)[d] != PyArray_STRIDES(whole)[d]) {
                        return 0;
                    }
                }
            }
        }
        place += blocks[i].length * step;
    }
    return 1;
}

static inline int joins_copy(PyArrayObject *stream, PyArrayObject *whole, char *place, int axis)
{
    if (axis == 0 && PyArray_TYPE(stream) == PyArray_TYPE(whole) && PyArray_ISCARRAY_RO(stream)) {
        memcpy(place, PyArray_BYTES(stream), PyArray_NBYTES(stream));
        return 0;
    }
    PyArrayObject *part = joins_borrowed_part(
        whole, place, axis, PyArray_NDIM(stream), PyArray_DIMS(stream));
    int failed = part == NULL || PyArray_CopyInto(part, stream) < 0;
    Py_XDECREF(part);
    return failed ? -1 : 0;
}

/* Returns the joined streams, in the array that `memory` views if the written ones are in place.
 *
 * `blocks` has room for one block per stream, `dims` for `ndim` lengths. */
static inline PyArrayObject *joins_join(
    PyArrayObject *memory, int n, PyArrayObject *const *streams, const char *written,
    joins_block *blocks, int axis, int ndim, npy_intp *dims, int type_number)
{
    for (int i = 0; i < n; i++) {
        blocks[i].ndim = PyArray_NDIM(streams[i]);
        blocks[i].shape = PyArray_DIMS(streams[i]);
    }
    if (joins_measure(n, blocks, axis, ndim, dims) < 0) return NULL;
    PyArrayObject *whole = (PyArrayObject *)PyArray_BASE(memory);
    int in_place = joins_fits((PyObject *)whole, ndim, dims, type_number)
        && joins_are_in_place(whole, axis, n, blocks, streams, written);
    if (in_place) {
        Py_INCREF(whole);
    } else {
        whole = joins_new_result(ndim, dims, type_number);
        if (whole == NULL) return NULL;
    }
    char *place = PyArray_BYTES(whole);
    npy_intp step = PyArray_STRIDES(whole)[axis];
    for (int i = 0; i < n; i++) {
        if (!(in_place && written[i]) && joins_copy(streams[i], whole, place, axis) < 0) {
            Py_DECREF(whole);
            return NULL;
        }
        place += blocks[i].length * step;
    }
    return whole;
}
