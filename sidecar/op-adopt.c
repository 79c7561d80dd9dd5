/* SPDX-License-Identifier: MIT */
/* adopt: nodes that the host has from a process of the sidecar that died. */

#include "proto/errmap.h"
#include "sidecar/adopt.h"
#include "sidecar/request.h"
#include "sidecar/serve.h"
#include "util/cleanup.h"

struct adoption {
	struct rsb_sess *sess;
	struct rsb_place place; /* of the one before, most often the same directory */
	struct rsb_buf failed;
	uint64_t n_failed;
};

static void
adoption_done(struct adoption *a)
{
	rsb_place_done(&a->place);
	rsb_buf_done(&a->failed);
}

static int
adopt_all(struct adoption *a, struct rsb_seq seq, uint32_t version)
{
	struct rsb_adopt_one one;
	int r;

	while ((r = rsb_seq_next(&seq, &rsb_desc_rsb_adopt_one, &one)) > 0) {
		struct rsb_adopt_failed failed = { .id = one.node.id };

		r = rsb_adopt_node(a->sess->nodes, &a->place, &one);
		if (r == 0)
			continue;
		failed.error = rsb_errmap_to_wire(r);
		r = rsb_seq_append(&rsb_desc_rsb_adopt_failed, &failed, version, &a->failed);
		if (r < 0)
			return r;
		a->n_failed++;
	}
	return r;
}

void
rsb_serve_adopt(struct rsb_request *rq, const struct rsb_adopt_req *req)
{
	RSB_CLEANUP(adoption_done)
	struct adoption a = { .sess = rq->sess, .place = RSB_PLACE_EMPTY };
	struct rsb_adopt_rep rep;
	int r;

	rsb_buf_init(&a.failed, RSB_MESSAGE_MAX);
	r = adopt_all(&a, req->nodes, rq->version);
	rep.failed = rsb_seq_of(&a.failed, a.n_failed);
	rsb_request_reply(rq, r, &rep);
}
