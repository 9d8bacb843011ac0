/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a program at a TCX hook returns: TCX_NEXT and TCX_DROP (Linux 6.6). */
#ifndef VCC_VERDICTS_H
#define VCC_VERDICTS_H

/* Lets the other programs on the device run. */
#define VERDICT_PASS (-1)
#define VERDICT_DROP 2

#endif
