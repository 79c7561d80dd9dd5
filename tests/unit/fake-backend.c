/* SPDX-License-Identifier: MIT */
#include "tests/unit/fake-backend.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <check.h>

#include "util/str.h"

#define ID "ifake1"
#define PID 42

static struct fake_backend *
fake_of(struct rsb_backend *backend)
{
	return rsb_container_of(backend, struct fake_backend, backend);
}

static void
fake_free(struct rsb_backend *backend)
{
	(void)backend; /* the test's own */
}

static void
describe_locked(const struct fake_backend *fake, struct rsb_sandbox *ret_sandbox)
{
	*ret_sandbox = (struct rsb_sandbox){ .id = ID, .state = fake->state };
	strcpy(ret_sandbox->intent, fake->intent);
}

static int
fake_create(struct rsb_backend *backend, const struct rsb_backend_create *req,
	struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag)
{
	struct fake_backend *fake = fake_of(backend);
	int r;

	rsb_mutex_lock(&fake->lock);
	fake->n_create++;
	if (fake->create_works) {
		ck_assert(!fake->exists);
		fake->exists = true;
		strcpy(fake->intent, req->intent);
	}
	r = fake->create_r;
	if (r == 0)
		describe_locked(fake, ret_sandbox);
	rsb_mutex_unlock(&fake->lock);
	return r < 0 ? rsb_diag_set(diag, r, "create fails") : 0;
}

/* As a control plane that is not reached. */
static bool
hang(struct fake_backend *fake)
{
	struct pollfd pfd = { .fd = fake->backend.abort_fd, .events = POLLIN };

	if (!FAKE_GET(fake, hangs))
		return false;
	ck_assert_int_eq(poll(&pfd, 1, -1), 1);
	return true;
}

static int
fake_get(struct rsb_backend *backend, const char *id, struct rsb_sandbox *ret_sandbox,
	struct rsb_diag *diag)
{
	struct fake_backend *fake = fake_of(backend);
	int r;

	ck_assert_str_eq(id, ID);
	rsb_mutex_lock(&fake->lock);
	fake->n_get++;
	rsb_mutex_unlock(&fake->lock);
	if (hang(fake))
		return -ECANCELED;
	rsb_mutex_lock(&fake->lock);
	r = fake->get_r;
	if (r == 0 && !fake->exists)
		r = -ENOENT;
	if (r == 0)
		describe_locked(fake, ret_sandbox);
	rsb_mutex_unlock(&fake->lock);
	return r < 0 ? rsb_diag_set(diag, r, "get fails") : 0;
}

static int
fake_list(struct rsb_backend *backend, const char *intent,
	int (*fn)(void *arg, const struct rsb_sandbox *sandbox), void *arg, struct rsb_diag *diag)
{
	struct fake_backend *fake = fake_of(backend);
	struct rsb_sandbox sandbox;
	bool listed;

	(void)diag;
	rsb_mutex_lock(&fake->lock);
	fake->n_list++;
	listed = fake->exists && !fake->list_hides && strcmp(intent, fake->intent) == 0;
	describe_locked(fake, &sandbox);
	rsb_mutex_unlock(&fake->lock);
	return listed ? fn(arg, &sandbox) : 0;
}

static int
fake_connect(struct rsb_backend *backend, const char *id, uint64_t ttl_ns,
	struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag)
{
	struct fake_backend *fake = fake_of(backend);

	(void)id;
	(void)ttl_ns;
	(void)diag;
	rsb_mutex_lock(&fake->lock);
	fake->n_connect++;
	fake->state = RSB_SANDBOX_RUNNING;
	describe_locked(fake, ret_sandbox);
	rsb_mutex_unlock(&fake->lock);
	return 0;
}

static int
count(struct fake_backend *fake, unsigned int *n)
{
	rsb_mutex_lock(&fake->lock);
	(*n)++;
	rsb_cond_broadcast(&fake->cond);
	rsb_mutex_unlock(&fake->lock);
	return 0;
}

static int
fake_extend(struct rsb_backend *backend, const char *id, uint64_t ttl_ns, struct rsb_diag *diag)
{
	(void)id;
	(void)ttl_ns;
	(void)diag;
	(void)count(fake_of(backend), &fake_of(backend)->n_extend);
	return hang(fake_of(backend)) ? -ECANCELED : 0;
}

static int
fake_pause(struct rsb_backend *backend, const char *id, struct rsb_diag *diag)
{
	(void)id;
	(void)diag;
	return count(fake_of(backend), &fake_of(backend)->n_pause);
}

static int
fake_kill(struct rsb_backend *backend, const char *id, struct rsb_diag *diag)
{
	struct fake_backend *fake = fake_of(backend);
	bool existed;

	(void)id;
	rsb_mutex_lock(&fake->lock);
	fake->n_kill++;
	existed = fake->exists;
	fake->exists = false;
	rsb_mutex_unlock(&fake->lock);
	return existed ? 0 : rsb_diag_set(diag, -ENOENT, "kill finds nothing");
}

static int
fake_upload(struct rsb_backend *backend, const struct rsb_sandbox *sandbox, const char *path,
	int fd, struct rsb_diag *diag)
{
	struct fake_backend *fake = fake_of(backend);

	(void)sandbox;
	(void)diag;
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(strncmp(path, "/opt/rsb/rsb-sidecar-", 21), 0);
	FAKE_SET(fake, uploaded, true);
	return count(fake, &fake->n_upload);
}

/* The script of keeper/deploy.c: argv[3] is the program, argv[4] what was uploaded for it. */
static int
fake_start(struct rsb_backend *backend, const struct rsb_sandbox *sandbox,
	const struct rsb_backend_start *req, struct rsb_backend_end *ret_end, struct rsb_diag *diag)
{
	struct fake_backend *fake = fake_of(backend);
	char ready[32];
	int r;

	(void)sandbox;
	(void)diag;
	(void)count(fake, &fake->n_start);
	ck_assert_str_eq(req->user, "root");
	r = req->started(req->arg, PID);
	if (r < 0)
		return r;
	if (!FAKE_GET(fake, uploaded)) {
		ck_assert_str_eq(req->argv[4], "");
		*ret_end = (struct rsb_backend_end){ .exited = true, .code = 127 };
		return 0;
	}
	r = FAKE_GET(fake, start_r);
	if (r < 0) {
		ck_assert_int_eq(req->output(req->arg, true, rsb_bytes_str("no\nreason \x1b")), 0);
		*ret_end = (struct rsb_backend_end){ .exited = true, .code = 1 };
		return 0;
	}
	if (fake->deployed)
		fake->deployed(fake->arg);
	(void)snprintf(ready, sizeof(ready), "ready %s\n", req->argv[6]);
	ck_assert_int_eq(req->output(req->arg, false, rsb_bytes_str("rea")), 0);
	return req->output(req->arg, false, rsb_bytes_str(ready + 3));
}

static int
fake_input(struct rsb_backend *backend, const struct rsb_sandbox *sandbox, uint64_t pid,
	struct rsb_bytes data, struct rsb_diag *diag)
{
	struct fake_backend *fake = fake_of(backend);

	(void)sandbox;
	ck_assert_uint_eq(pid, PID);
	/* a script that found no program may be gone before its input comes */
	if (!FAKE_GET(fake, uploaded))
		return rsb_diag_set(diag, -EREMOTEIO, "nobody takes it");
	rsb_mutex_lock(&fake->lock);
	ck_assert_int_eq(rsb_secret_set(&fake->input, data.data, data.size), 0);
	rsb_mutex_unlock(&fake->lock);
	return 0;
}

static int
fake_address(struct rsb_backend *backend, const struct rsb_sandbox *sandbox, unsigned int port,
	struct rsb_backend_address *ret_address)
{
	struct fake_backend *fake = fake_of(backend);

	(void)sandbox;
	(void)port;
	*ret_address = (struct rsb_backend_address){ 0 };
	ret_address->url = rsb_str_printf("http://127.0.0.1:%u", FAKE_GET(fake, port));
	return ret_address->url ? 0 : -ENOMEM;
}

void
fake_backend_init(struct fake_backend *fake)
{
	*fake = (struct fake_backend){
		.ops = {
			.name = "fake",
			.free = fake_free,
			.create = fake_create,
			.get = fake_get,
			.list = fake_list,
			.connect = fake_connect,
			.extend = fake_extend,
			.pause = fake_pause,
			.kill = fake_kill,
			.upload = fake_upload,
			.start = fake_start,
			.input = fake_input,
			.address = fake_address,
		},
		.create_works = true,
		.port = 1,
	};
	fake->backend.ops = &fake->ops;
	fake->backend.abort_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rsb_mutex_init(&fake->lock);
	rsb_cond_init(&fake->cond);
}

void
fake_backend_done(struct fake_backend *fake)
{
	close(fake->backend.abort_fd);
	rsb_cond_done(&fake->cond);
	rsb_mutex_done(&fake->lock);
}
