"""Coefficients, written by `scripts/mathematics/coefficients.py`."""

# Error 2**-57.35.
EXP = (
    float.fromhex("0x1.555555555555dp-3"),
    float.fromhex("0x1.555555555316fp-5"),
    float.fromhex("0x1.111111110e50dp-7"),
    float.fromhex("0x1.6c16c17cf2c0ep-10"),
    float.fromhex("0x1.a01a01b68490cp-13"),
    float.fromhex("0x1.a019aa9a5cef1p-16"),
    float.fromhex("0x1.71dde87c5187fp-19"),
    float.fromhex("0x1.28a019e626684p-22"),
    float.fromhex("0x1.af791049e13c2p-26"),
)
# Error 2**-64.0.
EXP_LONG = (
    float.fromhex("0x1.555555555555bp-3"),
    float.fromhex("0x1.555555555555ap-5"),
    float.fromhex("0x1.111111110ebfep-7"),
    float.fromhex("0x1.6c16c16c140f8p-10"),
    float.fromhex("0x1.a01a01b3a366cp-13"),
    float.fromhex("0x1.a01a01b21cd39p-16"),
    float.fromhex("0x1.71ddefc5fcdc5p-19"),
    float.fromhex("0x1.27e4c27e63066p-22"),
    float.fromhex("0x1.af6c80951a9c7p-26"),
    float.fromhex("0x1.1f9a23b797dc8p-29"),
)
# Error 2**-58.5.
LOG = (
    float.fromhex("0x1.5555555555592p-1"),
    float.fromhex("0x1.999999997fd77p-2"),
    float.fromhex("0x1.24924941f45b1p-2"),
    float.fromhex("0x1.c71c5206fe948p-3"),
    float.fromhex("0x1.74663f5c3ae58p-3"),
    float.fromhex("0x1.39a1af8da8736p-3"),
    float.fromhex("0x1.2f05d1bb9fcb8p-3"),
)
# Error 2**-72.55.
POWER = (
    float.fromhex("0x1.9999999999996p-2"),
    float.fromhex("0x1.2492492493034p-2"),
    float.fromhex("0x1.c71c71c580704p-3"),
    float.fromhex("0x1.745d183250315p-3"),
    float.fromhex("0x1.3b1362b680e21p-3"),
    float.fromhex("0x1.1120b5969b2e7p-3"),
    float.fromhex("0x1.de33716e18f31p-4"),
    float.fromhex("0x1.eb1122d379ab5p-4"),
)
# Error 2**-58.02.
SINE = (
    float.fromhex("-0x1.5555555555549p-3"),
    float.fromhex("0x1.111111110f87cp-7"),
    float.fromhex("-0x1.a01a019c11eccp-13"),
    float.fromhex("0x1.71de35780f921p-19"),
    float.fromhex("-0x1.ae5e668bb4fb6p-26"),
    float.fromhex("0x1.5d931b542d2afp-33"),
)
# Error 2**-64.22.
COSINE = (
    float.fromhex("0x1.555555555554cp-5"),
    float.fromhex("-0x1.6c16c16c15181p-10"),
    float.fromhex("0x1.a01a019cb2073p-16"),
    float.fromhex("-0x1.27e4f80a26dbdp-22"),
    float.fromhex("0x1.1ee9ec0f5e294p-29"),
    float.fromhex("-0x1.8faeb11db1b42p-37"),
)
# Error 2**-56.09.
LOG_SINE = (
    float.fromhex("-0x1.a51a6625307d3p+0"),
    float.fromhex("-0x1.151322ac7d8fep-1"),
    float.fromhex("-0x1.5b40cb0ff5965p-2"),
    float.fromhex("-0x1.010b36b86491cp-2"),
    float.fromhex("-0x1.9a01dfe56a62bp-3"),
    float.fromhex("-0x1.556b47a8d0fcfp-3"),
    float.fromhex("-0x1.248deb18f190fp-3"),
    float.fromhex("-0x1.007b3f6749cfdp-3"),
    float.fromhex("-0x1.be1626f4a697ap-4"),
    float.fromhex("-0x1.d51bf74428c61p-4"),
    float.fromhex("-0x1.9530c1a6f5283p-6"),
    float.fromhex("-0x1.23b80ac0fd21dp-2"),
    float.fromhex("0x1.36e9234462f4fp-2"),
    float.fromhex("-0x1.c1caf32e89e5ap-2"),
)
# Error 2**-54.78.
COTANGENT = (
    float.fromhex("-0x1.a51a6625307d3p+1"),
    float.fromhex("-0x1.151322ac7d7c8p+1"),
    float.fromhex("-0x1.0470984c1258fp+1"),
    float.fromhex("-0x1.010b36ab5da57p+1"),
    float.fromhex("-0x1.00412f2f2e0f9p+1"),
    float.fromhex("-0x1.000ffced5f521p+1"),
    float.fromhex("-0x1.000750c1831a7p+1"),
    float.fromhex("-0x1.ff974b3f2524bp+0"),
    float.fromhex("-0x1.025e27a04518bp+1"),
    float.fromhex("-0x1.d9b4a17c1c3b5p+0"),
    float.fromhex("-0x1.6e62262ba7b2ap+1"),
    float.fromhex("0x1.7d73955628eb5p+0"),
    float.fromhex("-0x1.71a60f41595c2p+3"),
    float.fromhex("0x1.c9cc8f1816f9ep+3"),
    float.fromhex("-0x1.02e36ac7a03e7p+4"),
)
# Error 2**-58.7.
GAMMALN_ABOVE = (
    float.fromhex("0x1.1e233f1bed864p-3"),
    float.fromhex("0x1.fd8e3716a2b69p-3"),
    float.fromhex("-0x1.506ce9a135e83p-7"),
    float.fromhex("-0x1.22b8f2f775835p-2"),
    float.fromhex("-0x1.d463da6839e93p-3"),
    float.fromhex("-0x1.35627c8cf47c8p-4"),
    float.fromhex("-0x1.6e5d197364c18p-7"),
    float.fromhex("-0x1.5a7956e4f4471p-11"),
    float.fromhex("-0x1.656fc1327c855p-17"),
)
# Error 2**-58.7.
GAMMALN_BELOW = (
    float.fromhex("0x1.0000000000000p+0"),
    float.fromhex("0x1.c4a116161a19fp+1"),
    float.fromhex("0x1.415c4a1907c9cp+2"),
    float.fromhex("0x1.d60b5ccb251b2p+1"),
    float.fromhex("0x1.7a23415784892p+0"),
    float.fromhex("0x1.4bc09ae2a40ecp-2"),
    float.fromhex("0x1.280ca663cf9f7p-5"),
    float.fromhex("0x1.c9ccc78425767p-10"),
    float.fromhex("0x1.9e6da5be14230p-16"),
)
# Error 2**-51.74.
GAMMALN_STIRLING = (
    float.fromhex("0x1.5555555555542p-4"),
    float.fromhex("-0x1.6c16c16a9d181p-9"),
    float.fromhex("0x1.a019f82407509p-11"),
    float.fromhex("-0x1.380dbfd9bef4ap-11"),
    float.fromhex("0x1.b7a235caf28dep-11"),
    float.fromhex("-0x1.d538ab3963fc5p-10"),
    float.fromhex("0x1.e53f62f556ea2p-9"),
)
# Error 2**-107.0.
DIGAMMA_ROOT = (
    float.fromhex("0x1.d8b618d5af8fep-2"),
    float.fromhex("-0x1.1514854803b2fp-56"),
)
# Error 2**-56.02.
DIGAMMA_ABOVE = (
    float.fromhex("0x1.0063a69894977p-2"),
    float.fromhex("-0x1.3661e613da2cfp-2"),
    float.fromhex("-0x1.66aa5460c5a44p-1"),
    float.fromhex("-0x1.7cb855b5b525ap-2"),
    float.fromhex("-0x1.42e08d8459b80p-4"),
    float.fromhex("-0x1.b9dddd8a478a2p-8"),
    float.fromhex("-0x1.72d9a17882719p-13"),
    float.fromhex("-0x1.0f32f0b9106e1p-26"),
)
# Error 2**-56.02.
DIGAMMA_BELOW = (
    float.fromhex("0x1.0000000000000p+0"),
    float.fromhex("0x1.19fba762e141bp+1"),
    float.fromhex("0x1.b78baafa56b4bp+0"),
    float.fromhex("0x1.37f22bb3e95c4p-1"),
    float.fromhex("0x1.a48814774765dp-4"),
    float.fromhex("0x1.ef884b34264f0p-8"),
    float.fromhex("0x1.78184ae2354e1p-13"),
)
# Error 2**-52.29.
DIGAMMA_STIRLING = (
    float.fromhex("0x1.5555555555548p-4"),
    float.fromhex("-0x1.11111110bca79p-7"),
    float.fromhex("0x1.04103f9e550fep-8"),
    float.fromhex("-0x1.110fee7d322f9p-8"),
    float.fromhex("0x1.f006d778950f7p-8"),
    float.fromhex("-0x1.5302bfa0ee9dcp-6"),
    float.fromhex("0x1.1e861c49b16aap-4"),
    float.fromhex("-0x1.741d11a415fddp-3"),
)
# Error 2**-57.71.
ERF = (
    float.fromhex("0x1.06eba8214db68p-3"),
    float.fromhex("-0x1.812746b0379b5p-2"),
    float.fromhex("0x1.ce2f21a03d897p-4"),
    float.fromhex("-0x1.b82ce30f2f42ep-6"),
    float.fromhex("0x1.565bcbf9e0851p-8"),
    float.fromhex("-0x1.c02d4fb1fe453p-11"),
    float.fromhex("0x1.f98dbd3401816p-14"),
    float.fromhex("-0x1.f225a08919c9fp-17"),
    float.fromhex("0x1.8b5155fb4f0abp-20"),
)
# Error 2**-57.87.
ERFCX = (
    float.fromhex("0x1.20dd750429b6dp-1"),
    float.fromhex("0x1.b14c2f863e941p+0"),
    float.fromhex("0x1.32eb4c546b651p+2"),
    float.fromhex("0x1.96376c8e35396p+3"),
    float.fromhex("0x1.ee3ae623ed2eep+4"),
    float.fromhex("0x1.0d1e526446ab5p+6"),
    float.fromhex("0x1.f276102974dc0p+6"),
    float.fromhex("0x1.58032c66a6bc5p+7"),
    float.fromhex("0x1.4016c2e75bf3bp+6"),
    float.fromhex("-0x1.c68f06aaf552ep+8"),
    float.fromhex("-0x1.84094447caf09p+10"),
    float.fromhex("-0x1.5c9c38b1b2858p+12"),
    float.fromhex("0x1.1f5ad6cc3499fp+15"),
    float.fromhex("-0x1.54ef65fb6c65fp+18"),
    float.fromhex("0x1.6c4cee37f549fp+21"),
    float.fromhex("-0x1.1425886618b12p+24"),
    float.fromhex("0x1.4892d654f8889p+26"),
    float.fromhex("-0x1.2b1e2ff4a3f95p+28"),
    float.fromhex("0x1.8a082765f9383p+29"),
    float.fromhex("-0x1.6799a6571cdb0p+30"),
    float.fromhex("0x1.afaf87bb5d810p+30"),
    float.fromhex("-0x1.33d9c64769065p+30"),
    float.fromhex("0x1.8d0b85931370fp+28"),
)
# Error 2**-59.48.
ARCTAN = (
    float.fromhex("-0x1.555555555553dp-2"),
    float.fromhex("0x1.99999999958e9p-3"),
    float.fromhex("-0x1.24924922b10c2p-3"),
    float.fromhex("0x1.c71c70e799924p-4"),
    float.fromhex("-0x1.745cf90a274c2p-4"),
    float.fromhex("0x1.3b111c551a66fp-4"),
    float.fromhex("-0x1.10ebdd04c3af6p-4"),
    float.fromhex("0x1.df11601ea749cp-5"),
    float.fromhex("-0x1.9cdc0bc9f6b53p-5"),
    float.fromhex("0x1.37ed0abdd8815p-5"),
    float.fromhex("-0x1.259cf3e061768p-6"),
)
# Error 2**-55.87.
ARCSIN = (
    float.fromhex("0x1.5555555555385p-3"),
    float.fromhex("0x1.333333336faecp-4"),
    float.fromhex("0x1.6db6db41bd213p-5"),
    float.fromhex("0x1.f1c72c744c2d9p-6"),
    float.fromhex("0x1.6e89eed78ab9bp-6"),
    float.fromhex("0x1.1c6c3111009c2p-6"),
    float.fromhex("0x1.c6f7c96dcf358p-7"),
    float.fromhex("0x1.8ee93111fb34bp-7"),
    float.fromhex("0x1.aa8d00f82a690p-8"),
    float.fromhex("0x1.40cbfbb16b692p-6"),
    float.fromhex("-0x1.0b1d53d1fffa8p-6"),
    float.fromhex("0x1.05dc18c9f4136p-5"),
)
# Error 2**-63.21.
SINH = (
    float.fromhex("0x1.5555555555556p-3"),
    float.fromhex("0x1.11111111110a1p-7"),
    float.fromhex("0x1.a01a01a0291ffp-13"),
    float.fromhex("0x1.71de3a45f72c3p-19"),
    float.fromhex("0x1.ae6467665fd92p-26"),
    float.fromhex("0x1.611a3a3bcda85p-33"),
    float.fromhex("0x1.b4cf6db6a5cddp-41"),
)
# Error 2**-60.72.
TRIGAMMA_ABOVE = (
    float.fromhex("0x1.651a6625307d3p+0"),
    float.fromhex("0x1.0b46cbc69cfeep+2"),
    float.fromhex("0x1.53c137ab4f5acp+2"),
    float.fromhex("0x1.cd38151d8a244p+1"),
    float.fromhex("0x1.4b384ac171f13p+0"),
    float.fromhex("0x1.2207f05ae0d96p-3"),
    float.fromhex("-0x1.2922705f5f369p-4"),
    float.fromhex("-0x1.14e965c0a549ep-5"),
    float.fromhex("-0x1.820d0b5b6e57ap-8"),
    float.fromhex("-0x1.a3611ce01ab82p-12"),
)
# Error 2**-60.72.
TRIGAMMA_BELOW = (
    float.fromhex("0x1.0000000000000p+0"),
    float.fromhex("0x1.2de8184e62d2dp+2"),
    float.fromhex("0x1.33752ee53dac9p+3"),
    float.fromhex("0x1.6453f9d6cc3e3p+3"),
    float.fromhex("0x1.0449e2acac234p+3"),
    float.fromhex("0x1.f3cff253b5842p+1"),
    float.fromhex("0x1.3d1e9c53da878p+0"),
    float.fromhex("0x1.01e7454b5a92ep-2"),
    float.fromhex("0x1.eae55293815b2p-6"),
    float.fromhex("0x1.a3611ce017311p-10"),
)
# Error 2**-48.29.
TRIGAMMA_STIRLING = (
    float.fromhex("0x1.55555555554ecp-3"),
    float.fromhex("-0x1.1111110fbdc83p-5"),
    float.fromhex("0x1.86185be3762e5p-6"),
    float.fromhex("-0x1.110ec4db4740ap-5"),
    float.fromhex("0x1.35d6422f6b662p-4"),
    float.fromhex("-0x1.f8e60703fbca6p-3"),
    float.fromhex("0x1.e3825e31a4ba2p-1"),
    float.fromhex("-0x1.51856946fc1dep+1"),
)
# Error 2**-23.35.
ERFINV = (
    float.fromhex("0x1.c5bf8650dc7aep-1"),
    float.fromhex("0x1.db2b8bfbed858p-3"),
    float.fromhex("0x1.79e2900e546e9p-7"),
    float.fromhex("-0x1.2d2f8fe30b0b7p-9"),
    float.fromhex("-0x1.5eb0cb2f5055cp-13"),
    float.fromhex("0x1.2014298ebf8bfp-14"),
    float.fromhex("-0x1.31648f987ecefp-18"),
    float.fromhex("-0x1.e75b492893c1cp-23"),
    float.fromhex("0x1.ea33a0fdd3b42p-26"),
)
# Error 2**-18.98.
ERFINV_ABOVE = (
    float.fromhex("-0x1.6a8dcfacc4c30p+0"),
    float.fromhex("0x1.ef9f52456542ap+1"),
    float.fromhex("-0x1.69df444e4635dp+2"),
    float.fromhex("0x1.4e427fe290287p+1"),
    float.fromhex("0x1.6e9985c2566dep-2"),
    float.fromhex("-0x1.64ed2d04d9a1dp-2"),
)
# Error 2**-18.98.
ERFINV_BELOW = (
    float.fromhex("0x1.0000000000000p+0"),
    float.fromhex("-0x1.e568f42334e79p+1"),
    float.fromhex("0x1.1e5c93c9a0988p+1"),
    float.fromhex("0x1.6194ffb319c11p-2"),
    float.fromhex("-0x1.64b9c4d873579p-2"),
)
# Error 2**-27.86.
ERFINV_FAR_ABOVE = (
    float.fromhex("0x1.4b2b01f4b1442p+1"),
    float.fromhex("-0x1.542bf055fa281p+0"),
    float.fromhex("0x1.1c36da9ee2c68p+2"),
    float.fromhex("0x1.d6345b28d0d54p+1"),
    float.fromhex("0x1.8f75e767b7839p-2"),
    float.fromhex("0x1.cb54713d3b782p-8"),
)
# Error 2**-27.86.
ERFINV_FAR_BELOW = (
    float.fromhex("0x1.0000000000000p+0"),
    float.fromhex("0x1.4154ee4460031p+2"),
    float.fromhex("0x1.d86e32675e8ccp+1"),
    float.fromhex("0x1.8f7c1fca385d3p-2"),
    float.fromhex("0x1.cb5394ef4b171p-8"),
)
# Error 2**-60.47.
GAMMA_ABOVE = (
    float.fromhex("-0x1.3c467e37db0c8p-5"),
    float.fromhex("0x1.1f98b571d74d6p-3"),
    float.fromhex("0x1.1a1bcd660ce71p-4"),
    float.fromhex("-0x1.9661d70d4d59dp-7"),
    float.fromhex("-0x1.256378fefcd3bp-9"),
    float.fromhex("0x1.0d229d085d944p-10"),
    float.fromhex("-0x1.d6ed15c6879b2p-14"),
    float.fromhex("0x1.3660d171b09a3p-18"),
    float.fromhex("-0x1.95c703e32f241p-29"),
)
# Error 2**-60.47.
GAMMA_BELOW = (
    float.fromhex("0x1.0000000000000p+0"),
    float.fromhex("0x1.32439f3476032p+0"),
    float.fromhex("-0x1.b2fd31a16eaf0p-9"),
    float.fromhex("-0x1.820643e658bf3p-3"),
    float.fromhex("0x1.6c5af479139c6p-6"),
    float.fromhex("0x1.11e2c21f2fee2p-7"),
    float.fromhex("-0x1.4151f01ff7b17p-9"),
    float.fromhex("0x1.0114a21898547p-12"),
    float.fromhex("-0x1.2e34df7fd8c7ap-17"),
)
# Error 2**-58.63.
GAMMA_STIRLING = (
    float.fromhex("0x1.5555555555549p-4"),
    float.fromhex("-0x1.6c16c16bb5082p-9"),
    float.fromhex("0x1.a019ffdf24a55p-11"),
    float.fromhex("-0x1.38129517d55f6p-11"),
    float.fromhex("0x1.b90db6452c7e7p-11"),
    float.fromhex("-0x1.f0bf65faad27ap-10"),
    float.fromhex("0x1.7a805b6a716c1p-8"),
    float.fromhex("-0x1.2590a18464cc3p-6"),
    float.fromhex("0x1.1b3e0acad42e6p-5"),
)
