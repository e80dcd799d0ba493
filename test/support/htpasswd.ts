/**
 * Hashes made by Apache's own tool, `htpasswd -nb FLAGS u PASSWORD` of httpd 2.4.71 (apache2-utils, Debian 12). The lines
 * with the flags of perl are made by its crypt() with the salt that they show, as glibc's libcrypt does it.
 */
export interface MadeHash {
  readonly flags: string;
  readonly password: string;
  readonly hash: string;
}

const LONG = "a".repeat(80) + "0123456789".repeat(10);

export const HTPASSWD: readonly MadeHash[] = [
  { flags: "-m", password: "secret", hash: "$apr1$uEv.xAfG$rdmUGUUWyMXePVHD1f8bn0" },
  { flags: "-m", password: "pässwörd 100% ok", hash: "$apr1$uqX8yKK6$3f0yWDSWXhZxl5Hlz6kpC1" },
  { flags: "-m", password: "", hash: "$apr1$zw5kWahL$IjYxn9THO.Svm6pUuXS220" },
  { flags: "-m", password: LONG, hash: "$apr1$pCbu4KCc$ixyMkGZKoS.PKWm4.ZABy1" },
  { flags: "-m", password: "exactly16bytes!!", hash: "$apr1$TF0stGUE$RyLXWcKYcAKSl5ZKOx3jS/" },
  { flags: "-B", password: "secret", hash: "$2y$05$u3rdL.SiY18Mt011HRThpuqEPZa3l8x8R8MkX0HZcq1tKzyAgRGZS" },
  { flags: "-B", password: "pässwörd 100% ok", hash: "$2y$05$q7pX/WEChYf/Q9zJiMsTtuqqmtgfh9x6emgcddlVlc2JZT49LPh2q" },
  { flags: "-B", password: "", hash: "$2y$05$5G/Qv8NnBZhcAd3qJKnIB.8EB4R7u9UndDQ2YohKpFsDOJDoVcAlm" },
  { flags: "-B", password: LONG, hash: "$2y$05$5J3SQMGTt8x8bgeqIJIDk.GmKXw.5ub66.kCcfJUpl0cvwMP/A7h." },
  { flags: "-B", password: "exactly16bytes!!", hash: "$2y$05$3CptHgL2U9X1PXw7fJNaLOnD8MdK7w8urutxaN0U/i4WaRfN3SvQS" },
  { flags: "-B -C 7", password: "secret", hash: "$2y$07$PcueXkElkMP4dEPwNc9vq.scDXon307G9xN1ALkGDRCrHz5tC3aZG" },
  { flags: "-s", password: "secret", hash: "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=" },
  { flags: "-s", password: "pässwörd 100% ok", hash: "{SHA}v2FuFMGkUaW1OYtOgqwvRmFrCDY=" },
  { flags: "-s", password: "", hash: "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk=" },
  { flags: "-s", password: LONG, hash: "{SHA}xepU/qp3Zkv2law6IXrkALGypJ0=" },
  { flags: "-s", password: "exactly16bytes!!", hash: "{SHA}/MHdGh4U54PoGuqlel4Ab6SYQzc=" },
  { flags: "-d", password: "secret", hash: "pm67u/NHwj4iM" },
  { flags: "-d", password: "", hash: "sc50wKPq.zChw" },
  { flags: "-2", password: "secret", hash: "$5$k8/.LTvKmSO7k6/e$MalVlrRZpTKi3.d4W3.w/ERmBOw9Myelm0nz0FkskE2" },
  {
    flags: "-2",
    password: "pässwörd 100% ok",
    hash: "$5$lKfJwP5j6gY/xBLZ$RGU.bfLSHObAhjMzKqtoZdOQ0Rbue76l.LjrOOQl/cA",
  },
  { flags: "-2", password: "", hash: "$5$zYflO4onK.Tf.CSr$uth9MW2P6b4IBVA3fHPU1CSrVBatTUH851kyuTpgeyB" },
  { flags: "-2", password: LONG, hash: "$5$aNJ7d9cOJPD5sb00$9m/PAU90j/Z82bhR.K0t7OBBbUa/0HOvDyr6dqPXgi3" },
  {
    flags: "-2",
    password: "exactly16bytes!!",
    hash: "$5$/I4aA2EGxtxwOHFY$t9ugaXse0SHA5PzMB.KYQmTYAclFuIdf7ormid8tlF.",
  },
  {
    flags: "-5",
    password: "secret",
    hash: "$6$9uiUwBaW/0BVf3an$SnzEM8OyUYHyfj.DNfeFlwsTr.p84diWDAFtu/lxJ.4OyZqqTI9bhKBBIQGSmMpLi1ZmCjtE2oTgH9nwWivmP.",
  },
  {
    flags: "-5",
    password: "pässwörd 100% ok",
    hash: "$6$C3yIFFMJ9TfXM./H$w5VZie2neEHChhsS0fPH2wu2cas4n009ByW4evI/mvzaUQdVlvKyoJvbUVB554yLvyN6TJ44VpbP6WopJz7q5.",
  },
  {
    flags: "-5",
    password: "",
    hash: "$6$pgwshXPJebfz3Y2m$AgJbpc7bR94w967lXQaLIYE/onqnzPKgK0GI/jKGtKp0JUpQdE/q/t2b9l2Lam1M6tHgLv4fejgLlLcadKUvy/",
  },
  {
    flags: "-5",
    password: LONG,
    hash: "$6$ZZcFYVDneTufFWOj$Er0CeBiIO1XF8M6L6Ts.Jz7CbiLC/Ak0ldHR/TZsrhR3jeF2xeCV.JXv1/uuOmix1LLM6tN3w3LKLvweUZ2Yx.",
  },
  {
    flags: "-5",
    password: "exactly16bytes!!",
    hash: "$6$tmVi2S1t3J6dd2u9$UShzIzkzOfbLwxuJtUdbaOmFJDBXM/4Fo30ETfl6QQT4mBZjUEk/lcJQ5g9S926QNEGAVQRZnklbGxOdl9M0n/",
  },
  {
    flags: "-2 -r 1000",
    password: "secret",
    hash: "$5$rounds=1000$6oqqHKqVvI4RqUk3$qylNcEpsvdA4bmDSHtrWIaCGk5PfIn6KXOOd0SAhBL7",
  },
  {
    flags: "-5 -r 10000",
    password: "secret",
    hash: "$6$rounds=10000$ek.SdmeCeciXLxOQ$nKnCxWVIkQmOh./XIwwfYUHTdRg7se5H.8KK7FVAjGJg/fYlODZbbscMkbw7SVA./khcIQGPVCdCJivjKjC1r.",
  },
  { flags: "perl", password: "secret", hash: "abNANd1rDfiNc" },
  { flags: "perl", password: "longer than eight", hash: "./yPRzyX/WeSM" },
  { flags: "perl", password: "secret", hash: "$5$rounds=1000$a$JdAKMvsrk7egGbpqdXqpKD4FMOs3L5rCSG.Wjkzh2n3" },
  {
    flags: "perl",
    password: "secret",
    hash: "$6$rounds=1777$averylongsaltstr$DsW7Ep8Y13gZa2szW.3ADAQ4iSRtzPttaLLovJlrr2ymOVNbuQUm24jBwlt7GOx6kiHw0XsDda2I1AlFVzroe/",
  },
  { flags: "perl", password: "secret", hash: "$2a$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW" },
];
