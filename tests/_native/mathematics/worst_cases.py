"""Arguments whose results are hard to round, from the CORE-MATH project.

Their results are within 2**-43 ulp of a double or of the midpoint of two doubles
(https://core-math.gitlabpages.inria.fr/).
"""

from __future__ import annotations

from typing import Final

_HARD: Final = {
    "exp": (
        "-0x1.f1403e6266858p+8 -0x1.fa333f680ad78p+7 -0x1.e0754b2e01d77p+7 -0x1.fdb32026a7545p-1 "
        "-0x1.f193dbe5f18bbp-3 -0x1.ecb9250a7ccdfp-7 -0x1.e335e62d5589bp-12 "
        "-0x1.fcbb7c8cdcf8dp-16 -0x1.e7a245aedac76p-23 -0x1.fcde6d5f38383p-27 "
        "-0x1.ec474c01d9511p-32 -0x1.fb1a000003ec8p-39 -0x1.f194000001e39p-40 "
        "-0x1.e500000000073p-46 0x1.0122ef37212ebp-1 0x1.58e8b6168741bp-1 0x1.8803036574923p-1 "
        "0x1.4a711cf842c36p+0 0x1.70a1a8cb942d3p+0 0x1.903e235f3364dp+4 0x1.bd547547f2533p+4 "
        "0x1.007304b0a189dp+5 0x1.ac8466ca799cfp+5 0x1.0410b6aef992bp+6"
    ),
    "exp2": (
        "-0x1.fcfd00ec779b7p+9 -0x1.25c47e97e1646p+9 -0x1.63f403b1de6dcp+7 -0x1.0447e97e1646p+5 "
        "-0x1.7d00ec779b7p+1 -0x1.fb4e565f5268fp-24 -0x1.0f8c014fc846dp-24 "
        "-0x1.66747b0f30984p-29 -0x1.0e4a5edb36fefp-29 -0x1.71547652b8305p-49 "
        "-0x1.9f7f051d0f361p-50 -0x1.4329e788612ap-50 0x1.1eb14348bf6e2p-26 "
        "0x1.0192cfecd50aap-25 0x1.ff2d2eb45b634p-25 0x1.a01f6707358f9p-24 0x1.dbd763bd30962p-21 "
        "0x1.7f89c43248p-6 0x1.dc0b40f4ddp-2 0x1.82ff1388649p+1 0x1.67702d03d374p+4 "
        "0x1.c017f89c43248p+6 0x1.003b81681e9bap+9 0x1.6dbb81681e9bap+9"
    ),
    "expm1": (
        "-0x1.ef0ce804b026fp-21 -0x1.196b3000b57e7p-23 -0x1.19003a4e59a87p-35 "
        "-0x1.3001af273afcp-38 -0x1.20071c5b4e5fap-40 -0x1.001ffe004000bp-42 "
        "-0x1.8a85c24f70653p-49 -0x1.fffffffffffap-52 0x1.1e3779b97f4a5p-50 "
        "0x1.0f876ccdf6cd9p-49 0x1.003ff801ff5aep-43 0x1.0d79d675fc6cfp-14 0x1.002881d0cbecfp-12 "
        "0x1.0b4265bcae2b1p-5 0x1.12be208502ed1p-4 0x1.006652fb6febep-3 0x1.11f5ed68f7d2fp-1 "
        "0x1.00ada891b730cp+0 0x1.00091a4a0dae5p+2 0x1.0076d13ab9d18p+4 0x1.01e5ceb2c761ep+5 "
        "0x1.02e473c781d6ep+6 0x1.8fc290c90cd9fp+7 0x1.ff56baf91b314p+8"
    ),
    "log": (
        "0x1.ea71d85cee02p-509 0x1.9476e304cd7c7p-384 0x1.26e9c4d32796p-232 "
        "0x1.92e11bc266f71p-145 0x1.140f5c8ed1p-120 0x1.22885e4877c51p-97 0x1.2d0b103b614dp-76 "
        "0x1.3076cf980cfdep-54 0x1.598dccfe1b0eap-43 0x1.613955dc802f8p-35 0x1.83432adc159b4p-19 "
        "0x1.1400edfbf2792p-12 0x1.d2a4b74795446p-8 0x1.9c31eeff5f542p-3 0x1.ffcd1f1e0c16fp+1 "
        "0x1.8aa15fe4f8bc8p+4 0x1.3adf97956561ep+8 0x1.f63e8a05c6055p+14 0x1.7d822b508bb3bp+20 "
        "0x1.70945ecdc0194p+28 0x1.deab16bf0cba3p+37 0x1.863e449c53727p+40 0x1.131425b692c14p+46 "
        "0x1.62a88613629b6p+678"
    ),
    "log2": (
        "0x0.000f1a111cd15p-1022 0x0.012ff40373cbbp-1022 0x0.04a03a8714c71p-1022 "
        "0x0.0f9d301b2cd61p-1022 0x0.12522ab634011p-1022 0x0.3db1e25b4f42ap-1022 "
        "0x0.40cc54e3736d7p-1022 0x0.4b7f295067c29p-1022 0x1.d32fc4418c629p-1 "
        "0x1.dfa2b8c55f0acp-1 0x1.f029fa21059d5p-1 0x1.ffdcbdb4d06bfp-1 0x1.90564eb47015dp+0 "
        "0x1.aca645f71c2e3p+0 0x1.c9f902c3ac577p+0 0x1.eda36e50d671dp+0 0x1.ffbd7d92d917ap+0 "
        "0x1.1b825652ca93dp+1 0x1.40a86445036a3p+1 0x1.6905501000405p+1 0x1.7f970c43db93bp+1 "
        "0x1.a7be4d35b2217p+1 0x1.ff556650693a6p+640 0x1.ff556650693a6p+1023"
    ),
    "log10": (
        "0x0.0449fb5c8a96ep-1022 0x0.ffc1a8eaef4d2p-1022 0x1.0341fa5659dbp-987 "
        "0x1.6ed75e642381bp-976 0x1.011a4fedfe3e6p-959 0x1.44781435b3476p-950 "
        "0x1.1f8f7013eecfbp-16 0x1.ff4c7c8e0b96p-15 0x1.0018d53a95ca3p-12 0x1.fbe2e24055901p-11 "
        "0x1.0af77385eb1c7p-7 0x1.05d59a214e434p-5 0x1.08cbaef299a84p+3 0x1.6da3a4d5729e7p+4 "
        "0x1.8ec7f3fa1f0fbp+6 0x1.0214115c6897ep+7 0x1.0208123dc80eep+8 0x1.0f429276a3e9ap+10 "
        "0x1.ac963f749a004p+11 0x1.13aedb3538379p+12 0x1.fd5ddbf6a82b2p+13 0x1.3ecef81357f3p+807 "
        "0x1.0eb9538dde21bp+814 0x1.f9d7f1bd67aa5p+814"
    ),
    "log1p": (
        "-0x1.ebb4788f92235p-1 -0x1.e3d22eebcd277p-5 -0x1.e49d028fff5f1p-14 "
        "-0x1.ff2a89fbaed35p-26 -0x1.fefff1f6544c7p-31 -0x1.f7ffffffffad5p-42 "
        "-0x1.fffffffffffebp-48 0x1.1e3779b97f4a9p-50 0x1.200000000001bp-46 "
        "0x1.080000000016bp-42 0x1.0267183eaa2e9p-18 0x1.003ff5333549cp-11 0x1.00fad16d4997dp-5 "
        "0x1.03d29d5ad6388p-1 0x1.0041f934a35b2p+5 0x1.01033ffc76c24p+14 0x1.1ec61f05e8ec5p+18 "
        "0x1.0092084ce40eap+27 0x1.05af9c7ab5cb1p+48 0x1.17730e99cd1a2p+63 0x1.297b8bc8b2d6p+67 "
        "0x1.042ba9de75289p+77 0x1.0de56f7b56c5cp+85 0x1.0a1636f8aeb6ep+93"
    ),
    "sinh": (
        "-0x1.4bb1ba2dbe945p+8 -0x1.05a1a1b748058p+6 -0x1.042fc3303e709p+4 -0x1.33d1cbb0c4b1ep+2 "
        "-0x1.044f34799346bp+0 -0x1.2750f700d566cp-2 -0x1.54a21b38bf9bap-4 -0x1.002ee87ae6797p-8 "
        "-0x1.0fbbfddfe090ap-11 -0x1.1fb19ba8312cp-15 -0x1.3d0934e543db1p-19 "
        "-0x1.0de601024fb86p-23 0x1.4f747439b3488p-25 0x1.527c27803eb4fp-21 "
        "0x1.20592d115d871p-18 0x1.141cd938c89dfp-13 0x1.1235f6b274fb6p-10 0x1.2b3f3bee5d1c6p-6 "
        "0x1.3b7b291d8e166p-3 0x1.114c75d6a3adfp-1 0x1.10843d4771137p+1 0x1.01898854d0c2cp+3 "
        "0x1.04b2e7a155193p+5 0x1.06eb107157e27p+7"
    ),
    "cosh": (
        "-0x1.c991ec9a4cd38p+6 -0x1.03fdf3603656dp+5 -0x1.013065f3561b2p+4 -0x1.04414c3c17d28p+2 "
        "-0x1.003c1d82e8bb4p+0 -0x1.0224c551f6d8dp-2 -0x1.04dd84f7aa62cp-5 "
        "-0x1.2c8a8f63b6efdp-10 -0x1.10ee4d5cc9796p-13 -0x1.4d6c8b23639afp-16 "
        "-0x1.1fffffffffffcp-23 -0x1.52a7fa9d2f8e9p-25 0x1.1e3779b97f4a8p-25 "
        "0x1.3ffffffffffffp-24 0x1.0051f2e2330acp-19 0x1.0586765fe096ap-15 0x1.15a85e4556189p-11 "
        "0x1.0d53b413c2c1ep-7 0x1.1b8fd5cbd6107p-3 0x1.00bf99263dd9bp-1 0x1.0394eedca82eap+1 "
        "0x1.0e37c0086260bp+3 0x1.5291162ffa7ccp+4 0x1.58be0ec315db6p+5"
    ),
    "tanh": (
        "-0x1.241bf835f9d6p+4 -0x1.51c6cc0397232p+2 -0x1.015cee8026857p+1 -0x1.0b3344cd5964dp-1 "
        "-0x1.004524207fad9p-3 -0x1.02fde3806525cp-6 -0x1.000b47bdb383fp-9 "
        "-0x1.4a000000491d3p-16 -0x1.27717d38f4999p-18 -0x1.fdd2f82b922d4p-22 "
        "-0x1.049587001c4bbp-23 -0x1.3bacd6561ff5ep-25 0x1.0a402fcc79296p-25 "
        "0x1.02a3ad2ef6f4ap-24 0x1.0226098f30cep-22 0x1.50660bf3b7c3fp-21 0x1.0e000000280b9p-16 "
        "0x1.1c58c908dc4a5p-12 0x1.28c99804c9cbp-9 0x1.018a1e31f3a2fp-4 0x1.028bf1d22b07dp-2 "
        "0x1.01885ae3c818ap+0 0x1.00a0f3cf999acp+2 0x1.0b15623004e51p+3"
    ),
    "sin": (
        "-0x1.f9ae9db2c4bbep+7 -0x1.46552b86d2836p+1 -0x1.005023d32fee5p+1 -0x1.04394261cffa6p-1 "
        "-0x1.11cc1fc3e23b1p-3 -0x1.598bae9e632f6p-7 -0x1.009ee184a02e7p-8 "
        "-0x1.00874a5f9fc33p-13 -0x1.5a2a8380650efp-17 -0x1.20976482e4361p-21 "
        "-0x1.1e02cffedca63p-22 -0x1.30c7efbee12aep-24 0x1.184a0aa58191fp-24 "
        "0x1.06800e629d672p-23 0x1.12f9b448bb3a8p-21 0x1.4bbb05f9b0748p-18 0x1.16784aa912146p-14 "
        "0x1.3c46c450d1b0ep-9 0x1.2a00f326cff6cp-7 0x1.0102947e7003bp-3 0x1.0518fffe634f2p-2 "
        "0x1.0192deafac33fp+0 0x1.093026e62d889p+1 0x1.6ebdedd37ba17p+1"
    ),
    "cos": (
        "-0x1.4e25557c29cp+10 -0x1.6b8a6273d7c21p+0 -0x1.00147eec5cfa5p+0 -0x1.00786b0bf421p-2 "
        "-0x1.3c07e72107f3ap-4 -0x1.3bd47cfa7cd96p-7 -0x1.27491078a6625p-9 "
        "-0x1.12b8d27bbb801p-16 -0x1.4dd9ab059e799p-21 -0x1.00ff807f60deep-23 "
        "-0x1.03f81f636b80dp-24 -0x1.2c2fc595456a7p-25 0x1.0f876ccdf6cd9p-25 "
        "0x1.5e8add236a58fp-25 0x1.55aaa002a9d5bp-24 0x1.1ff1c6c28756ap-21 0x1.29262f89dd7d5p-17 "
        "0x1.0009effd4bedap-12 0x1.00a33764a0a83p-7 0x1.0309272a36a6dp-5 0x1.0f5ba326bf09fp-3 "
        "0x1.0203b71ba100fp-1 0x1.2b0899b756771p+0 0x1.3603228c45bfcp+10"
    ),
    "tan": (
        "-0x1.91beeb637f56p+0 -0x1.2b5f97a471a2ep-1 -0x1.6592ae058acb6p-2 -0x1.50be4c6085eecp-3 "
        "-0x1.313b3464febbcp-4 -0x1.3f2088c5c2247p-6 -0x1.0004b89dcb553p-11 "
        "-0x1.49ffffffb6e2dp-16 -0x1.3ad19272d940fp-18 -0x1.4e8f8c77b149ep-20 "
        "-0x1.00aa39615213cp-23 -0x1.61246d6ad9aecp-25 0x1.0a402fcc79297p-25 "
        "0x1.02a3ad2ef6f46p-24 0x1.5bce979ccf4aep-23 0x1.67fffffffe845p-19 0x1.0dffffffd7f47p-16 "
        "0x1.027950dd1e54p-15 0x1.043750295596p-6 0x1.00ddeead167aap-4 0x1.0070ebbf6ca19p-3 "
        "0x1.0a3f739090bf1p-2 0x1.0807c9374cc91p-1 0x1.005c4ae44e6cp+0"
    ),
    "arcsin": (
        "-0x1.59f6d30d3fa4p-2 -0x1.2d0d0a7bbbfdp-2 -0x1.01d5e66283b3ap-2 -0x1.6db0dffe9689p-3 "
        "-0x1.0020e4d222182p-3 -0x1.8380eef4c7aa4p-4 -0x1.f9ae194ce8209p-5 -0x1.4d2de24f8406cp-5 "
        "-0x1.ff551c5217192p-23 -0x1.a6a58d55e3079p-25 -0x1.4f747439b3489p-25 "
        "-0x1.d12ed0af1a27ep-26 0x1.7137449123ef6p-26 0x1.250bfe1b082f4p-25 "
        "0x1.8db9cb7511e9bp-25 0x1.8p-24 0x1.01f364af7804dp-5 0x1.72902ae0c04c8p-5 "
        "0x1.01cdfe8e57f18p-4 0x1.ddc11f23a9eb5p-4 0x1.20c993527825dp-3 0x1.9b4993bdd9356p-3 "
        "0x1.1ad104a12f21ep-2 0x1.4bbd4d19a57d9p-2"
    ),
    "arccos": (
        "-0x1.8de9eeb0d2e02p-1 -0x1.63e246c448c25p-1 -0x1.4584c042cf425p-1 -0x1.1ec8576f37eap-1 "
        "-0x1.05bb80ca008adp-1 -0x1.026d19c43a1dcp-1 0x1.d652a9b8f530cp-7 0x1.0ac3566d3857cp-6 "
        "0x1.dbd7b9e27ed71p-6 0x1.59d20f7f204a5p-5 0x1.778b3973d7abap-5 0x1.246d2ca0e55f4p-4 "
        "0x1.53ea6c7255e88p-4 0x1.08e9c87f4b0a6p-3 0x1.b3e8a381276fep-3 0x1.08f067eee444dp-2 "
        "0x1.425a5aef1cfdfp-2 0x1.c81a8d4008c0cp-2 0x1.e9cf882fca50dp-2 0x1.ffbbd82b5ad23p-2 "
        "0x1.4182199998587p-1 0x1.71190ca7b2f4dp-1 0x1.97d63fb521effp-1 0x1.f8af1729c9905p-1"
    ),
    "arctan": (
        "-0x1.02c0e7bad8ceap+44 -0x1.015010c5a285ap+42 -0x1.00110cb9144eep+32 "
        "-0x1.00706e523e587p+25 -0x1.021076bdbbcccp+13 -0x1.00094221b47e5p+7 "
        "-0x1.00fb09e65f876p+3 -0x1.000adaedb43f3p+0 -0x1.00302a7282de1p-3 "
        "-0x1.000321dec01a8p-10 -0x1.0275d814518a4p-17 -0x1.0226098f30cf1p-22 "
        "0x1.02a3ad2ef6f4bp-24 0x1.0012a94e63692p-20 0x1.01071aaa77202p-12 0x1.000a9ac7bfd91p-4 "
        "0x1.0061c6a5a887fp-1 0x1.002657c1a3eap+1 0x1.007c7f89977dap+5 0x1.00d9e387d944p+10 "
        "0x1.02a0a7093e101p+17 0x1.0060c652c3d0cp+31 0x1.018007f7f4cebp+39 0x1.01e031e16cc19p+43"
    ),
    "arcsinh": (
        "-0x1.edf3606885937p+1023 -0x1.c226257c2a1cfp+1021 -0x1.0932ccd32f1eep+0 "
        "-0x1.010c159aba888p-2 -0x1.235e7306961ebp-4 -0x1.0b214940cecbp-6 -0x1.06e0cd3874ee4p-8 "
        "-0x1.00a8ccd1181b7p-10 -0x1.2bf102b93b85p-12 -0x1.68000001ab26p-15 "
        "-0x1.e00000000fd2p-18 -0x1.8000000000001p-24 0x1.d12ed0af1a279p-26 "
        "0x1.e000000003f48p-19 0x1.e00000003f48p-17 0x1.121776fcac21ap-13 0x1.10b192c18734p-11 "
        "0x1.0779ec8c428b8p-9 0x1.0fb5b6894850fp-7 0x1.0d76727e704eap-5 0x1.025c36ea349e6p-3 "
        "0x1.020c1bd3cc67cp-1 0x1.62a88613629b6p+677 0x1.ffe85af9a0e1fp+1022"
    ),
    "arccosh": (
        "0x1.099318a43ac8p+0 0x1.ff3f2946ba554p+0 0x1.c72ed3852bfbp+1 0x1.03bc04b8b03e8p+3 "
        "0x1.07579e7ee2ec2p+4 0x1.0151def34c2b8p+5 0x1.0a16fd3c21efbp+6 0x1.008225f37dce3p+7 "
        "0x1.3d94d8e3f506cp+8 0x1.0c13eac9b899dp+9 0x1.012c520eba40cp+10 0x1.0f9afa701ec75p+11 "
        "0x1.39585068fd5d6p+12 0x1.00446103d0327p+13 0x1.0579705f1cd31p+15 0x1.01ece3da00844p+16 "
        "0x1.02f02739d048fp+18 0x1.01055e65c1483p+20 0x1.0587def96160ap+22 0x1.0d37356f8dffcp+24 "
        "0x1.62a88613629b6p+677 0x1.292d3636de2c3p+1022 0x1.1415ac5dbffe6p+1023 "
        "0x1.edf3606885937p+1023"
    ),
    "arctanh": (
        "-0x1.fce790a1abc82p-1 -0x1.f6b4baf011254p-1 -0x1.f0b55fce926e3p-1 -0x1.ff5edc023bf71p-2 "
        "-0x1.c1e83cf54acp-2 -0x1.912e19877006p-2 -0x1.610c0003eba54p-2 -0x1.7d707ff72ab63p-8 "
        "-0x1.2fb7020987de1p-8 -0x1.dffffdcc75587p-9 -0x1.dfffffffffabap-21 "
        "-0x1.250bfe1b082f4p-26 0x1.d12ed0af1a28p-27 0x1.ffb54a6f20b52p-22 0x1.fec4932abb126p-21 "
        "0x1.ff7cff1720ee7p-9 0x1.5f1c3e51ba07ap-8 0x1.3ca0081c9b16ap-2 0x1.7ec57d197b47ep-2 "
        "0x1.a0bfabe184b16p-2 0x1.ebe762b890d32p-2 0x1.ee4efbe649d24p-1 0x1.f4a4eef653a23p-1 "
        "0x1.f8d8840c1b872p-1"
    ),
    "erf": (
        "-0x1.4fc2bc0383347p+1 -0x1.05811c5fcce5p+1 -0x1.a6c0b2275246cp+0 -0x1.6d5ad4307dd52p-7 "
        "-0x1.c64b0467c326fp-17 -0x1.726b7f9917ee6p-17 -0x1.10f964f2ee93cp-27 "
        "-0x1.dc7bb77f29f54p-28 -0x1.7e5d4743ccdcbp-28 -0x1.8a7ecfa3043d4p-61 "
        "-0x1.1890baaf4f119p-61 -0x0.ff48b22d72dbp-1022 0x0.ee67cb849a62cp-1022 "
        "0x1.037b548d9d7a6p-61 0x1.4f6ba8540e986p-61 0x1.b29404e7af1b1p-61 0x1.a2ceafdb24248p-28 "
        "0x1.0000da9f7c564p-27 0x1.38ad40c0e5536p-27 0x1.8d4952120716ap-17 0x1.15188a889bfbdp-16 "
        "0x1.8a12a0ef247f3p+0 0x1.c7c464980a1d2p+0 0x1.33133fdd30ffep+1"
    ),
    "erfc": (
        "-0x1.7744f8f74e946p+2 -0x1.5f4a7cf12a20ap+2 -0x1.3aa5738f4bfcp+2 -0x1.10b96c9f8deaep+2 "
        "-0x1.e21b81ad03e61p-48 -0x1.9b359440bf8f8p-48 -0x1.29c5b1f9ebd06p-49 "
        "-0x1.0d69b96836e27p-49 -0x1.c5bf891b4ef6cp-53 0x1.c5bf891b4ef6bp-55 "
        "0x1.1147eeb4af7dbp-8 0x1.3e50efe7177f1p-8 0x1.6f2205fdd7d08p-8 0x1.9b815600fd61p-8 "
        "0x1.c8efb65805924p-8 0x1.23747ea66431ap+0 0x1.4073297021df9p+0 0x1.82830d3580c6ap+0 "
        "0x1.d0d9ca81d2008p+0 0x1.5c04e00f08fc9p+1 0x1.01ec419787d34p+2 0x1.25d40dc2aef72p+2 "
        "0x1.01360bbf7aa3cp+3 0x1.09d847658ae6cp+4"
    ),
    "pow": (
        "0x1.ffffffffffffcp-1 0x1.fffffffffffffp-2 0x1.ffffffffffffcp-1 -0x1.ffffffffffffdp-2 "
        "0x1.ffffffffffffp-1 -0x1.ffffffffffff6p-3 0x1.ffffffffffff8p-1 -0x1.ffffffffffffbp-3"
    ),
}

HARD: Final = {name: [float.fromhex(one) for one in text.split()] for name, text in _HARD.items()}
POWERS: Final = (HARD["pow"][::2], HARD.pop("pow")[1::2])
