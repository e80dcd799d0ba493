/**
 * Numbering plans (ITU-T E.164) of the countries whose numbers the entity PhoneNumber knows: which significant numbers
 * are valid, and how they are written inside the country. Areas of the US and Canada are listed one by one, because
 * most ten digits would otherwise be a number; the other plans are told by first digits and length.
 */

export interface NumberingPlan {
  readonly countryCode: string;
  /** Digits before the significant number in calls within the country. */
  readonly trunk: RegExp;
  /** Whether a number within the country is written with its trunk digits. */
  readonly isTrunkWritten: boolean;
  /** Lengths after which groups of a significant number may end; undefined when groups of any two digits are usual. */
  readonly borders?: ReadonlySet<number>;
  isValid(significant: string): boolean;
}

/** Areas of the North American Numbering Plan that belong to the US or to Canada, and those without a place. */
const NORTH_AMERICA: ReadonlySet<string> = new Set(
  (
    "201 202 203 204 205 206 207 208 209 210 212 213 214 215 216 217 218 219 220 223 224 225 226 227 228 229 231 234 " +
    "235 236 239 240 248 249 250 251 252 253 254 256 257 260 262 263 267 269 270 272 273 274 276 279 281 283 289 301 " +
    "302 303 304 305 306 307 308 309 310 312 313 314 315 316 317 318 319 320 321 323 324 325 326 327 329 330 331 332 " +
    "334 336 337 339 341 343 346 347 350 351 352 353 354 360 361 363 364 365 367 368 369 380 382 385 386 401 402 403 " +
    "404 405 406 407 408 409 410 412 413 414 415 416 417 418 419 423 424 425 428 430 431 432 434 435 437 438 440 442 " +
    "443 445 447 448 450 458 463 464 468 469 470 472 474 475 478 479 480 484 500 501 502 503 504 505 506 507 508 509 " +
    "510 512 513 514 515 516 517 518 519 520 521 522 523 524 525 526 527 528 529 530 531 532 533 534 539 540 541 544 " +
    "548 551 557 559 561 562 563 564 566 567 570 571 572 573 574 575 577 579 580 581 582 584 585 586 587 588 600 601 " +
    "602 603 604 605 606 607 608 609 610 612 613 614 615 616 617 618 619 620 622 623 626 628 629 630 631 633 636 639 " +
    "640 641 645 646 647 650 651 656 657 659 660 661 662 667 669 672 678 680 681 682 683 686 689 701 702 703 704 705 " +
    "706 707 708 709 712 713 714 715 716 717 718 719 720 724 725 726 727 728 730 731 732 734 737 738 740 742 743 747 " +
    "748 753 754 757 760 762 763 765 769 770 771 772 773 774 775 778 779 780 781 782 785 786 800 801 802 803 804 805 " +
    "806 807 808 810 812 813 814 815 816 817 818 819 820 821 825 826 828 830 831 832 833 835 838 839 840 843 844 845 " +
    "847 848 850 854 855 856 857 858 859 860 862 863 864 865 866 867 870 872 873 877 878 879 888 900 901 902 903 904 " +
    "905 906 907 908 909 910 912 913 914 915 916 917 918 919 920 925 928 929 930 931 934 936 937 938 940 941 942 943 " +
    "945 947 948 949 951 952 954 956 959 970 971 972 973 975 978 979 980 983 984 985 986 989"
  ).split(" "),
);

function byPattern(pattern: RegExp): (significant: string) => boolean {
  return (significant) => pattern.test(significant);
}

export const NUMBERING_PLANS: readonly NumberingPlan[] = [
  {
    countryCode: "1",
    trunk: /^1/,
    isTrunkWritten: false,
    borders: new Set([3, 6]),
    isValid: (significant) => /^[2-9]\d\d[2-9]\d{6}$/.test(significant) && NORTH_AMERICA.has(significant.slice(0, 3)),
  },
  {
    // Great Britain: areas, services of 03, mobile numbers, free and shared cost.
    countryCode: "44",
    trunk: /^0/,
    isTrunkWritten: true,
    isValid: byPattern(
      /^(?:1[1-9]\d{8}|1[2-9](?:04|08|20|24|27|35|46|50|54|60|61|6[2368]|76|80|8[468]|9[578])\d{5}|2[038]\d{8}|247\d{7}|292\d{7}|3[0347]\d{8}|5[56]\d{8}|7[0-57-9]\d{8}|80[08]\d{7}|800\d{6}|84[3-5]\d{7}|87[0-3]\d{7}|9[018]\d{8})$/,
    ),
  },
  {
    // Germany: areas of two to five digits with numbers of any length, mobile numbers, services.
    countryCode: "49",
    trunk: /^0/,
    isTrunkWritten: true,
    isValid: byPattern(
      /^(?:(?:2\d|3[03-9]|[4-8]\d|9[1-9])\d{5,10}|15\d{9}|1(?:6[023]|7\d)\d{7,8}|180\d{5,8}|137\d{7}|32\d{9}|700\d{8}|900[1359]\d{6})$/,
    ),
  },
  {
    // Israel.
    countryCode: "972",
    trunk: /^0/,
    isTrunkWritten: true,
    isValid: byPattern(/^(?:[23489]\d{7}|5\d{8}|7[2-9]\d{7}|1(?:[78]00|599)\d{6})$/),
  },
  {
    // India: mobile numbers.
    countryCode: "91",
    trunk: /^0/,
    isTrunkWritten: false,
    isValid: byPattern(/^[6-9]\d{9}$/),
  },
  {
    // India: areas, and free numbers.
    countryCode: "91",
    trunk: /^0/,
    isTrunkWritten: true,
    isValid: byPattern(/^(?:11[2-7]\d{7}|(?:1[2-8]|[2-8]\d)(?:\d[2-7]\d{6}|\d\d[2-7]\d{5})|1800\d{6,7})$/),
  },
  {
    // Brazil: two digits of area; mobile numbers begin with 9, the others with 2 to 5 or 7. A carrier may follow the trunk 0.
    countryCode: "55",
    trunk: /^0(?:\d\d(?=\d{10,11}$))?/,
    isTrunkWritten: false,
    borders: new Set([2, 6, 7]),
    isValid: byPattern(
      /^(?:(?:1[1-9]|2[12478]|3[1-578]|4[1-9]|5[1345]|6[1-9]|7[134579]|8[1-9]|9[1-9])(?:9\d{8}|[2-57]\d{7})|800\d{6,7})$/,
    ),
  },
];
