/* SPDX-License-Identifier: MIT */
#include "proto/ws-upgrade.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "util/hash.h"
#include "util/secret.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* RFC 6455 1.3 */
#define ACCEPT_SIZE 28                              /* base64 of a SHA-1 */

/* The headers that decide; each at most once. */
enum {
	HOST,
	UPGRADE,
	CONNECTION,
	KEY,
	VERSION,
	ACCEPT,
	EXTENSIONS,
	PROTOCOL,
	CONTENT_LENGTH,
	TRANSFER_ENCODING,
	AUTH,
	N_HEADER,
};

static const char *const header_names[N_HEADER] = {
	[HOST] = "Host",
	[UPGRADE] = "Upgrade",
	[CONNECTION] = "Connection",
	[KEY] = "Sec-WebSocket-Key",
	[VERSION] = "Sec-WebSocket-Version",
	[ACCEPT] = "Sec-WebSocket-Accept",
	[EXTENSIONS] = "Sec-WebSocket-Extensions",
	[PROTOCOL] = "Sec-WebSocket-Protocol",
	[CONTENT_LENGTH] = "Content-Length",
	[TRANSFER_ENCODING] = "Transfer-Encoding",
	[AUTH] = "X-Rsb-Auth",
};

/* data is NULL where a header is absent. */
struct head {
	struct rsb_bytes start; /* request or status line */
	struct rsb_bytes values[N_HEADER];
};

static bool
is_token(const uint8_t *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (p[i] <= ' ' || p[i] >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", p[i]))
			return false;
	return size > 0;
}

static bool
is_text(const char *s)
{
	for (; *s; s++)
		if (((uint8_t)*s < ' ' && *s != '\t') || *s == 0x7f)
			return false;
	return true;
}

static bool
equals(struct rsb_bytes bytes, const char *s)
{
	return bytes.size == strlen(s) && strncasecmp((const char *)bytes.data, s, bytes.size) == 0;
}

static struct rsb_bytes
trim(struct rsb_bytes b)
{
	while (b.size > 0 && (b.data[0] == ' ' || b.data[0] == '\t')) {
		b.data++;
		b.size--;
	}
	while (b.size > 0 && (b.data[b.size - 1] == ' ' || b.data[b.size - 1] == '\t'))
		b.size--;
	return b;
}

/* A comma-separated list holds the word. */
static bool
has_word(struct rsb_bytes list, const char *word)
{
	while (list.size > 0) {
		const uint8_t *comma = memchr(list.data, ',', list.size);
		size_t n = comma ? (size_t)(comma - list.data) : list.size;

		if (equals(trim((struct rsb_bytes){ list.data, n }), word))
			return true;
		n += comma ? 1 : 0;
		list = (struct rsb_bytes){ list.data + n, list.size - n };
	}
	return false;
}

/* The next line of rest, without its CRLF; no other control byte is let through. */
static int
take_line(struct rsb_bytes *rest, struct rsb_bytes *ret_line)
{
	const uint8_t *end = memmem(rest->data, rest->size, "\r\n", 2);
	size_t n = (size_t)(end - rest->data);

	for (size_t i = 0; i < n; i++)
		if ((rest->data[i] < ' ' && rest->data[i] != '\t') || rest->data[i] == 0x7f)
			return -EPROTO;
	*ret_line = (struct rsb_bytes){ rest->data, n };
	*rest = (struct rsb_bytes){ end + 2, rest->size - n - 2 };
	return 0;
}

static int
take_header(struct rsb_bytes line, struct head *head)
{
	const uint8_t *colon = memchr(line.data, ':', line.size);
	struct rsb_bytes name, value;

	/*
	 * A line that begins with a blank would continue the last one: RFC 9112 5.2 lets us refuse.
	 */
	if (!colon || !is_token(line.data, (size_t)(colon - line.data)))
		return -EPROTO;
	name = (struct rsb_bytes){ line.data, (size_t)(colon - line.data) };
	value = trim((struct rsb_bytes){ colon + 1, line.size - name.size - 1 });
	for (size_t i = 0; i < N_HEADER; i++) {
		if (!equals(name, header_names[i]))
			continue;
		if (head->values[i].data)
			return -EPROTO;
		head->values[i] = value;
	}
	return 0;
}

/* Size of the whole head, 0 while it is incomplete. */
static int
parse_head(struct rsb_bytes in, struct head *ret_head)
{
	size_t max = rsb_min(in.size, (size_t)RSB_WS_HEADERS_MAX);
	const uint8_t *end = max > 0 ? memmem(in.data, max, "\r\n\r\n", 4) : NULL;
	struct head head = { .start = { .data = NULL } };
	struct rsb_bytes rest, line;
	int r;

	if (!end)
		return in.size >= RSB_WS_HEADERS_MAX ? -EMSGSIZE : 0;
	rest = (struct rsb_bytes){ in.data, (size_t)(end - in.data) + 2 };
	r = take_line(&rest, &head.start);
	while (r >= 0 && rest.size > 0) {
		r = take_line(&rest, &line);
		if (r >= 0)
			r = take_header(line, &head);
	}
	if (r < 0)
		return r;
	*ret_head = head;
	return (int)(end - in.data) + 4;
}

static int
accept_of(struct rsb_bytes key, struct rsb_buf *out)
{
	uint8_t joined[RSB_WS_KEY_SIZE + sizeof(GUID) - 1];
	uint8_t digest[RSB_SHA1_SIZE];

	if (key.size != RSB_WS_KEY_SIZE)
		return -EINVAL;
	memcpy(joined, key.data, RSB_WS_KEY_SIZE);
	memcpy(joined + RSB_WS_KEY_SIZE, GUID, sizeof(GUID) - 1);
	rsb_sha1((struct rsb_bytes){ joined, sizeof(joined) }, digest);
	return rsb_base64_encode((struct rsb_bytes){ digest, sizeof(digest) }, out);
}

int
rsb_ws_key(char key[static RSB_WS_KEY_SIZE + 1])
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_WS_KEY_SIZE };
	uint8_t random[16];
	int r;

	r = rsb_random(random, sizeof(random));
	if (r >= 0)
		r = rsb_base64_encode((struct rsb_bytes){ random, sizeof(random) }, &text);
	if (r < 0)
		return r;
	memcpy(key, rsb_buf_head(&text), RSB_WS_KEY_SIZE);
	key[RSB_WS_KEY_SIZE] = '\0';
	return 0;
}

int
rsb_ws_request(const char *host, const char *path, const char *key,
	const struct rsb_ws_header *headers, size_t n_header, struct rsb_buf *out)
{
	int r;

	if (!is_text(host) || !is_text(path) || path[0] != '/' || strpbrk(path, " \t"))
		return -EINVAL;
	for (size_t i = 0; i < n_header; i++)
		if (!is_token((const uint8_t *)headers[i].name, strlen(headers[i].name)) ||
			!is_text(headers[i].value))
			return -EINVAL;
	r = rsb_buf_printf(out,
		"GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		"Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n",
		path, host, key);
	for (size_t i = 0; r >= 0 && i < n_header; i++)
		r = rsb_buf_printf(out, "%s: %s\r\n", headers[i].name, headers[i].value);
	if (r >= 0)
		r = rsb_buf_append(out, "\r\n", 2);
	return r;
}

/* "HTTP/1.1 101 Switching Protocols", the text optional. */
static int
parse_status(struct rsb_bytes line)
{
	const uint8_t *p = line.data;
	int status = 0;

	if (line.size < 12 || memcmp(p, "HTTP/1.1 ", 9) != 0 || (line.size > 12 && p[12] != ' '))
		return -EPROTO;
	for (size_t i = 9; i < 12; i++) {
		if (p[i] < '0' || p[i] > '9')
			return -EPROTO;
		status = status * 10 + (p[i] - '0');
	}
	return status;
}

int
rsb_ws_response(struct rsb_bytes in, const char *key, int *ret_status)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf expected = { .max = ACCEPT_SIZE };
	struct head head;
	int r, size;

	*ret_status = 0;
	size = parse_head(in, &head);
	if (size <= 0)
		return size;
	r = parse_status(head.start);
	if (r < 0)
		return r;
	*ret_status = r;
	/*
	 * We offered neither extension nor protocol: RFC 6455 4.1 wants a server that chose one
	 * left.
	 */
	if (r != 101 || !equals(head.values[UPGRADE], "websocket") ||
		!has_word(head.values[CONNECTION], "upgrade") || head.values[EXTENSIONS].data ||
		head.values[PROTOCOL].data)
		return -EPROTO;
	r = accept_of(rsb_bytes_str(key), &expected);
	if (r < 0)
		return r;
	if (head.values[ACCEPT].size != ACCEPT_SIZE ||
		memcmp(head.values[ACCEPT].data, rsb_buf_head(&expected), ACCEPT_SIZE) != 0)
		return -EPROTO;
	return size;
}

/* "GET <path> HTTP/1.1" */
static int
parse_request(struct rsb_bytes line, struct rsb_bytes *ret_path)
{
	static const char end[] = " HTTP/1.1";
	struct rsb_bytes path;

	if (line.size < 5 + sizeof(end) - 1 || memcmp(line.data, "GET /", 5) != 0)
		return -EPROTO;
	path = (struct rsb_bytes){ line.data + 4, line.size - 4 - (sizeof(end) - 1) };
	if (memcmp(path.data + path.size, end, sizeof(end) - 1) != 0)
		return -EPROTO;
	if (memchr(path.data, ' ', path.size) || memchr(path.data, '\t', path.size))
		return -EPROTO;
	*ret_path = path;
	return 0;
}

/* Base64 of 16 bytes. */
static bool
is_key(struct rsb_bytes key)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf raw = { .max = RSB_WS_KEY_SIZE };

	return key.size == RSB_WS_KEY_SIZE && rsb_base64_decode(key, &raw) >= 0 &&
	       rsb_buf_len(&raw) == 16;
}

int
rsb_ws_accept(struct rsb_bytes in, struct rsb_ws_upgrade *ret_upgrade)
{
	struct rsb_bytes path;
	struct head head;
	int r, size;

	size = parse_head(in, &head);
	if (size <= 0)
		return size;
	r = parse_request(head.start, &path);
	if (r < 0)
		return r;
	if (head.values[HOST].size == 0 || !has_word(head.values[UPGRADE], "websocket") ||
		!has_word(head.values[CONNECTION], "upgrade") ||
		!equals(head.values[VERSION], "13") || !is_key(head.values[KEY]))
		return -EPROTO;
	/* What follows are frames: a body would be taken for them. */
	if (head.values[CONTENT_LENGTH].data || head.values[TRANSFER_ENCODING].data)
		return -EPROTO;
	*ret_upgrade = (struct rsb_ws_upgrade){
		.path = path,
		.key = head.values[KEY],
		.auth = head.values[AUTH],
	};
	return size;
}

int
rsb_ws_accept_reply(struct rsb_bytes key, struct rsb_buf *out)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf accept = { .max = ACCEPT_SIZE };
	int r;

	r = accept_of(key, &accept);
	if (r < 0)
		return r;
	return rsb_buf_printf(out,
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		"Connection: Upgrade\r\nSec-WebSocket-Accept: %.*s\r\n\r\n",
		ACCEPT_SIZE, (const char *)rsb_buf_head(&accept));
}

static const char *
reason(int status)
{
	switch (status) {
	case 400:
		return "Bad Request";
	case 401:
		return "Unauthorized";
	case 404:
		return "Not Found";
	case 426:
		return "Upgrade Required";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	default:
		return "Refused";
	}
}

int
rsb_ws_refuse(int status, struct rsb_buf *out)
{
	/* RFC 6455 4.4: a wrong version is told the right one. */
	return rsb_buf_printf(out,
		"HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: 0\r\n%s\r\n", status,
		reason(status),
		status == 426 ? "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" : "");
}
