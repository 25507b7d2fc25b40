"""Support functions of C wrappers: memory for outputs, scratch memory and checks of lengths.

They read tables of the lengths of arrays, which `function` defines in the same module.
"""

from __future__ import annotations

from typing import Final

# Return codes of the function besides the numbers of the program's failures.
NO_MEMORY: Final = -1
DOES_NOT_FIT: Final = -2
WRONG_LENGTH: Final = -3
NEGATIVE_LENGTH: Final = -4
# The number of details of a failure.
N_DETAILS: Final = 8
_MOST: Final = (1 << 63) - 1

# The first three fields of the frame are the context, as the machine code knows it. The others are
# the linked list of blocks of scratch memory, each of which begins with the address of the previous
# one; the caller's tables of outputs; and the code that says why an output was refused.
SUPPORT: Final = f"""\
%fuse.frame = type {{ ptr, ptr, [{N_DETAILS} x i64], ptr, ptr, ptr, ptr, i64 }}
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare {{i64, i1}} @llvm.smul.with.overflow.i64(i64, i64)

; initial times the product of lengths; the largest number if it is beyond that.
define internal i64 @fuse.product(i64 %initial, ptr %lengths, i64 %ndim) nounwind {{
entry:
  br label %head
head:
  %axis = phi i64 [0, %entry], [%next, %body]
  %n = phi i64 [%initial, %entry], [%product, %body]
  %more = icmp ult i64 %axis, %ndim
  br i1 %more, label %body, label %end
body:
  %place = getelementptr i64, ptr %lengths, i64 %axis
  %length = load i64, ptr %place
  %both = call {{i64, i1}} @llvm.smul.with.overflow.i64(i64 %n, i64 %length)
  %exact = extractvalue {{i64, i1}} %both, 0
  %is_beyond = extractvalue {{i64, i1}} %both, 1
  %product = select i1 %is_beyond, i64 {_MOST}, i64 %exact
  %next = add i64 %axis, 1
  br label %head
end:
  ret i64 %n
}}

; The first axis whose length is negative, or how many axes there are.
define internal i64 @fuse.negative(ptr %lengths, i64 %ndim) nounwind {{
entry:
  br label %head
head:
  %axis = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %axis, %ndim
  br i1 %more, label %body, label %end
body:
  %place = getelementptr i64, ptr %lengths, i64 %axis
  %length = load i64, ptr %place
  %is_negative = icmp slt i64 %length, 0
  %next = add i64 %axis, 1
  br i1 %is_negative, label %end, label %head
end:
  ret i64 %axis
}}

define internal ptr @fuse.scratch(ptr %frame, i64 %bytes) nounwind {{
entry:
  %is_too_much = icmp ugt i64 %bytes, {1 << 62}
  br i1 %is_too_much, label %none, label %ask
ask:
  %whole = add i64 %bytes, 128
  %block = call ptr @malloc(i64 %whole)
  %is_missing = icmp eq ptr %block, null
  br i1 %is_missing, label %none, label %got
got:
  %blocks = getelementptr %fuse.frame, ptr %frame, i32 0, i32 3
  %before = load ptr, ptr %blocks
  store ptr %before, ptr %block
  store ptr %block, ptr %blocks
  %number = ptrtoint ptr %block to i64
  %behind = add i64 %number, 71
  %aligned = and i64 %behind, -64
  %memory = inttoptr i64 %aligned to ptr
  ret ptr %memory
none:
  ret ptr null
}}

define internal void @fuse.release(ptr %frame) nounwind {{
entry:
  %blocks = getelementptr %fuse.frame, ptr %frame, i32 0, i32 3
  %last = load ptr, ptr %blocks
  br label %head
head:
  %block = phi ptr [%last, %entry], [%before, %body]
  %is_end = icmp eq ptr %block, null
  br i1 %is_end, label %end, label %body
body:
  %before = load ptr, ptr %block
  call void @free(ptr %block)
  br label %head
end:
  ret void
}}

define internal ptr @fuse.allocate(ptr %frame, i64 %output, ptr %lengths) nounwind {{
entry:
  %ndim_place = getelementptr i64, ptr @fuse.ndims, i64 %output
  %ndim = load i64, ptr %ndim_place
  %first_place = getelementptr i64, ptr @fuse.firsts, i64 %output
  %first = load i64, ptr %first_place
  %kept_place = getelementptr %fuse.frame, ptr %frame, i32 0, i32 6
  %all_kept = load ptr, ptr %kept_place
  %kept = getelementptr i64, ptr %all_kept, i64 %first
  %bytes = mul i64 %ndim, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %kept, ptr %lengths, i64 %bytes, i1 false)
  %refusal = getelementptr %fuse.frame, ptr %frame, i32 0, i32 7
  %detail0 = getelementptr %fuse.frame, ptr %frame, i32 0, i32 2, i32 0
  %detail1 = getelementptr %fuse.frame, ptr %frame, i32 0, i32 2, i32 1
  %axis = call i64 @fuse.negative(ptr %lengths, i64 %ndim)
  %is_negative = icmp ult i64 %axis, %ndim
  br i1 %is_negative, label %negative, label %count
negative:
  store i64 %output, ptr %detail0
  store i64 %axis, ptr %detail1
  %length_place = getelementptr i64, ptr %lengths, i64 %axis
  %length = load i64, ptr %length_place
  %detail2 = getelementptr %fuse.frame, ptr %frame, i32 0, i32 2, i32 2
  store i64 %length, ptr %detail2
  store i64 {NEGATIVE_LENGTH}, ptr %refusal
  ret ptr null
count:
  %n = call i64 @fuse.product(i64 1, ptr %lengths, i64 %ndim)
  %capacities_place = getelementptr %fuse.frame, ptr %frame, i32 0, i32 5
  %capacities = load ptr, ptr %capacities_place
  %capacity_place = getelementptr i64, ptr %capacities, i64 %output
  %capacity = load i64, ptr %capacity_place
  %outputs_place = getelementptr %fuse.frame, ptr %frame, i32 0, i32 4
  %outputs = load ptr, ptr %outputs_place
  %memory_place = getelementptr ptr, ptr %outputs, i64 %output
  %memory = load ptr, ptr %memory_place
  ; An output without elements needs no memory, but null would say that there is none.
  %is_empty = icmp eq i64 %n, 0
  br i1 %is_empty, label %empty, label %some
empty:
  ret ptr %frame
some:
  %fits = icmp sle i64 %n, %capacity
  %is_there = icmp ne ptr %memory, null
  %is_good = and i1 %fits, %is_there
  br i1 %is_good, label %good, label %bad
good:
  ret ptr %memory
bad:
  store i64 %output, ptr %detail0
  store i64 %n, ptr %detail1
  store i64 {DOES_NOT_FIT}, ptr %refusal
  ret ptr null
}}

define internal ptr @fuse.copied(ptr %frame, ptr %data, ptr %lengths, i64 %ndim, i64 %size) \
nounwind {{
entry:
  %bytes = call i64 @fuse.product(i64 %size, ptr %lengths, i64 %ndim)
  %copy = call ptr @fuse.scratch(ptr %frame, i64 %bytes)
  %is_missing = icmp eq ptr %copy, null
  br i1 %is_missing, label %end, label %got
got:
  call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr %data, i64 %bytes, i1 false)
  br label %end
end:
  ret ptr %copy
}}

define internal i1 @fuse.handed(ptr %frame, i64 %output, ptr %data, ptr %lengths, i64 %ndim, \
i64 %size) nounwind {{
entry:
  %memory = call ptr @fuse.allocate(ptr %frame, i64 %output, ptr %lengths)
  %is_there = icmp ne ptr %memory, null
  br i1 %is_there, label %got, label %end
got:
  %bytes = call i64 @fuse.product(i64 %size, ptr %lengths, i64 %ndim)
  call void @llvm.memcpy.p0.p0.i64(ptr %memory, ptr %data, i64 %bytes, i1 false)
  br label %end
end:
  ret i1 %is_there
}}

define internal i1 @fuse.agree(ptr %frame, ptr %lengths, i64 %n) nounwind {{
entry:
  br label %head
head:
  %axis = phi i64 [0, %entry], [%next, %good]
  %more = icmp ult i64 %axis, %n
  br i1 %more, label %body, label %agree
body:
  %place = getelementptr i64, ptr %lengths, i64 %axis
  %length = load i64, ptr %place
  %known_place = getelementptr i64, ptr @fuse.known, i64 %axis
  %known = load i64, ptr %known_place
  %is_unknown = icmp slt i64 %known, 0
  %is_length = icmp sge i64 %length, 0
  %is_right = icmp eq i64 %length, %known
  %is_good = select i1 %is_unknown, i1 %is_length, i1 %is_right
  %next = add i64 %axis, 1
  br i1 %is_good, label %good, label %bad
good:
  br label %head
bad:
  %whose_place = getelementptr i64, ptr @fuse.whose, i64 %axis
  %whose = load i64, ptr %whose_place
  %which_place = getelementptr i64, ptr @fuse.axes, i64 %axis
  %which = load i64, ptr %which_place
  %detail0 = getelementptr %fuse.frame, ptr %frame, i32 0, i32 2, i32 0
  store i64 %whose, ptr %detail0
  %detail1 = getelementptr %fuse.frame, ptr %frame, i32 0, i32 2, i32 1
  store i64 %which, ptr %detail1
  %detail2 = getelementptr %fuse.frame, ptr %frame, i32 0, i32 2, i32 2
  store i64 %known, ptr %detail2
  %detail3 = getelementptr %fuse.frame, ptr %frame, i32 0, i32 2, i32 3
  store i64 %length, ptr %detail3
  ret i1 false
agree:
  ret i1 true
}}
"""
