/* CONGA's mark in an IPv4 ID: weft/conga.Mark. */

#define MARK_DSCP 9
#define MARK_FEEDBACK 0x8000
#define MARK_TAG_SHIFT 11
#define MARK_SHIFT 8
#define MARK_METRIC (7 << MARK_SHIFT)
#define MARK_INDEX 1
