/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "herald"

#include "keeper/herald.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "keeper/hook.h"
#include "util/clock.h"
#include "util/list.h"
#include "util/log.h"
#include "util/str.h"
#include "util/thread.h"

#define TEXT_MAX 1024u

struct news {
	struct rsb_list link;
	char *kind; /* RSB_EVENT_KIND=... */
	char *text;
	char *time;
};

struct rsb_herald {
	char *command;                 /* const after new */
	char *fixed[RSB_HOOK_ABOUT_N]; /* const after new; variables that are always the same */
	char *const *env;              /* const after new */
	uint64_t timeout_ns;           /* const after new */
	int stop_fd;                   /* const after new */
	pthread_t thread;              /* const after new */
	bool started;                  /* const after new */

	struct rsb_mutex lock;
	struct rsb_cond cond;
	struct rsb_list waiting; /* {lock} of struct news */
	unsigned int n_waiting;  /* {lock} */
	bool stop;               /* {lock} */
};

static void
news_free(struct news *news)
{
	if (!news)
		return;
	free(news->kind);
	free(news->text);
	free(news->time);
	free(news);
}

static struct news *
take_first(struct rsb_herald *herald) RSB_REQUIRES(herald->lock)
{
	struct news *news = rsb_list_entry(herald->waiting.next, struct news, link);

	rsb_list_remove(&news->link);
	herald->n_waiting--;
	return news;
}

/* NULL: the end. */
static struct news *
wait_for_news(struct rsb_herald *herald)
{
	struct news *news = NULL;

	rsb_mutex_lock(&herald->lock);
	while (!herald->stop && rsb_list_empty(&herald->waiting))
		rsb_cond_wait(&herald->cond, &herald->lock);
	if (!herald->stop)
		news = take_first(herald);
	rsb_mutex_unlock(&herald->lock);
	return news;
}

static void
proclaim(const struct rsb_herald *herald, const struct news *news)
{
	const char *const vars[] = { herald->fixed[0], herald->fixed[1], herald->fixed[2],
		news->kind, news->text, news->time, NULL };
	const struct rsb_hook hook = { .command = herald->command,
		.env = herald->env,
		.vars = vars,
		.cwd = "/",
		.quiet = true,
		.timeout_ns = herald->timeout_ns,
		.stop_fd = herald->stop_fd };
	struct rsb_diag diag = { 0 };
	int r = rsb_hook_run(&hook, &diag);

	if (r < 0 && r != -ECANCELED)
		rsb_warn("notify.command: %s", rsb_diag_text(&diag, r));
	else if (r > 0)
		rsb_warn("notify.command ended with status %d", r);
}

static void *
run(void *arg)
{
	struct rsb_herald *herald = arg;
	struct news *news;

	while ((news = wait_for_news(herald))) {
		proclaim(herald, news);
		news_free(news);
	}
	return NULL;
}

static int
fill(struct rsb_herald *herald, const struct rsb_herald_config *config)
{
	const struct rsb_hook_about about = {
		.sandbox = config->sandbox, .sandbox_id = config->sandbox_id, .dir = config->dir
	};
	int r = rsb_hook_about(&about, herald->fixed);

	herald->command = strdup(config->command);
	herald->env = config->env;
	herald->timeout_ns = config->timeout_ns;
	if (r < 0 || !herald->command)
		return -ENOMEM;
	herald->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return herald->stop_fd < 0 ? -errno : 0;
}

int
rsb_herald_new(const struct rsb_herald_config *config, struct rsb_herald **ret_herald)
{
	RSB_CLEANUP(rsb_herald_freep) struct rsb_herald *herald = rsb_new(struct rsb_herald);
	int r;

	if (!herald)
		return -ENOMEM;
	herald->stop_fd = -1;
	rsb_mutex_init(&herald->lock);
	rsb_cond_init(&herald->cond);
	rsb_list_init(&herald->waiting);
	r = fill(herald, config);
	if (r >= 0)
		r = rsb_thread_start("herald", run, herald, &herald->thread);
	if (r < 0)
		return r;
	herald->started = true;
	*ret_herald = rsb_steal(&herald);
	return 0;
}

/* NULL: no memory. */
static struct news *
news_new(const char *kind, const char *text)
{
	struct news *news = rsb_new(struct news);
	char now[RSB_RFC3339_SIZE];
	char shown[TEXT_MAX];

	if (!news)
		return NULL;
	/* A sandbox may have chosen parts of it, and the command may show it on a terminal. */
	rsb_str_escape(rsb_bytes_str(text), shown, sizeof(shown));
	rsb_clock_rfc3339(rsb_wall_ns(), now);
	news->kind = rsb_str_printf("RSB_EVENT_KIND=%s", kind);
	news->text = rsb_str_printf("RSB_EVENT_TEXT=%s", shown);
	news->time = rsb_str_printf("RSB_EVENT_TIME=%s", now);
	if (news->kind && news->text && news->time)
		return news;
	news_free(news);
	return NULL;
}

void
rsb_herald_tell(struct rsb_herald *herald, const char *kind, const char *text)
{
	struct news *news = news_new(kind, text);
	struct news *oldest = NULL;

	if (!news) {
		rsb_warn("notify.command is not run for '%s': no memory", kind);
		return;
	}
	rsb_mutex_lock(&herald->lock);
	rsb_list_append(&herald->waiting, &news->link);
	if (++herald->n_waiting > RSB_HERALD_WAITING_MAX)
		oldest = take_first(herald);
	rsb_cond_signal(&herald->cond);
	rsb_mutex_unlock(&herald->lock);
	if (oldest)
		rsb_warn("notify.command is too slow: %s is left out", oldest->kind);
	news_free(oldest);
}

void
rsb_herald_free(struct rsb_herald *herald)
{
	const uint64_t one = 1;

	if (!herald)
		return;
	rsb_mutex_lock(&herald->lock);
	herald->stop = true;
	rsb_cond_signal(&herald->cond);
	rsb_mutex_unlock(&herald->lock);
	if (herald->started) {
		if (write(herald->stop_fd, &one, sizeof(one)) < 0)
			rsb_warn_r(-errno, "notify.command is waited for");
		(void)pthread_join(herald->thread, NULL);
	}
	rsb_mutex_lock(&herald->lock);
	while (!rsb_list_empty(&herald->waiting))
		news_free(take_first(herald));
	rsb_mutex_unlock(&herald->lock);
	if (herald->stop_fd >= 0)
		(void)close(herald->stop_fd);
	rsb_cond_done(&herald->cond);
	rsb_mutex_done(&herald->lock);
	for (size_t i = 0; i < RSB_HOOK_ABOUT_N; i++)
		free(herald->fixed[i]);
	free(herald->command);
	free(herald);
}
