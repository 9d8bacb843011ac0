/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* underlays: any */
/* Law 14: nothing that was held leaves beyond the peer's right edge or the underlay's window. */
#include "hold.h"

#define UNIT_BYTES 1024

int main(void)
{
	const struct vcc_flow f = any_flow();
	const struct vcc_params p = any_params();
	const struct vcc_buffer b = any_buffer();
	const struct vcc_hold h = any_hold(&f, &b);
	const struct vcc_segment s = any_segment();

	/* The head of the FIFO: hold_admit() drops what is not plausible, and nothing was released.
	 */
	__CPROVER_assume(f.stage >= STAGE_ESTABLISHED && h.begun && !(s.flags & TCP_SYN));
	__CPROVER_assume(!seq_before(s.seq, f.snd_una) && segment_end(&s) != s.seq &&
			 segment_end(&s) - f.snd_una <= SEQ_WINDOW_MAX);
	/* Divisions by other sizes take the solver hours. */
	__CPROVER_assume(f.mss_bytes == UNIT_BYTES && (s.seg_bytes == UNIT_BYTES || !s.seg_bytes));
	uint32_t leaves_bytes = hold_leaves_bytes(&f, &h, &p, &s);
	uint32_t end = s.seq + leaves_bytes;

	CLAIM(leaves_bytes <= segment_end(&s) - s.seq, "no more than there is");
	if (!leaves_bytes)
		return 0;
	CLAIM(!seq_after(end, h.peer_edge), "law 14: not beyond the peer's right edge");
	if (!is_managed(&f) || !imposes(&f, &p))
		return 0;
	uint32_t payload_bytes = vcc_min(leaves_bytes, s.payload_bytes);
	bool lone = !flight_bytes(&f) && !seq_after(s.seq, f.snd_nxt) &&
		    payload_bytes <= vcc_max(s.seg_bytes ? s.seg_bytes : s.payload_bytes, 1);

	CLAIM(lone || !seq_after(s.seq + payload_bytes, hold_underlay_edge(&f, &h, &p)),
	      "law 14: not beyond the underlay's window, but for a lone segment");
	CLAIM(leaves_bytes <= s.payload_bytes || leaves_bytes == segment_end(&s) - s.seq,
	      "a FIN leaves behind all data");
}
