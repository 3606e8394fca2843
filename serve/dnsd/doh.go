package dnsd

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/miekg/dns"
)

// messageType is the media type of messages (RFC 8484, section 6).
const messageType = "application/dns-message"

// HTTPS returns a handler for DNS over HTTPS (RFC 8484), at whatever path. Requests in
// clear are refused. It answers as many requests at once as there may be connections; the
// web server limits how many a client may send.
func (s *Server) HTTPS() http.Handler {
	h := &overHTTPS{s: s, slots: make(chan struct{}, s.o.TCP.Connections)}
	h.workers.New = func() any { return &webWorker{worker: s.newWorker(s.base, s.https)} }
	return h
}

// overHTTPS answers requests.
type overHTTPS struct {
	s       *Server
	slots   chan struct{} // has one for each that is being answered
	workers sync.Pool     // of *webWorker
}

// webWorker is a worker, and the memory for its answers.
type webWorker struct {
	*worker
	answer []byte
}

// begin reports whether another request may be answered; end must follow then. Shutdown
// waits for end before it releases what the server has.
func (h *overHTTPS) begin() bool {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.s.closed {
		return false
	}
	select {
	case h.slots <- struct{}{}:
		h.s.running.Add(1)
		return true
	default:
		return false
	}
}

func (h *overHTTPS) end() {
	<-h.slots
	h.s.running.Done()
}

func (h *overHTTPS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	msg, err := readRequest(r)
	if err != nil {
		if err == errMethod {
			w.Header().Set("Allow", "GET, HEAD, POST")
		}
		refuseHTTP(w, err.status, err.text)
		return
	}
	if !h.begin() {
		w.Header().Set("Retry-After", "1")
		refuseHTTP(w, http.StatusServiceUnavailable, "Too many ask at once; try again.")
		return
	}
	defer h.end()
	one, ok := h.workers.Get().(*webWorker)
	if !ok {
		refuseHTTP(w, http.StatusInternalServerError, "Something went wrong here.")
		return
	}
	defer h.workers.Put(one)
	one.answer = one.respond(one.answer[:0], msg, peer{addr: remoteOf(r), tcp: true, private: true}, h.s.o.Now())
	if one.answer == nil {
		refuseHTTP(w, http.StatusBadRequest, "This is not a question of the DNS.")
		return
	}
	head := w.Header()
	head.Set("Content-Type", messageType)
	head.Set("Content-Length", strconv.Itoa(len(one.answer)))
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", keptFor(one.answer, one.hasCookie))
	if r.Method != http.MethodHead {
		_, _ = w.Write(one.answer) // a client that does not get it is gone
	}
}

// keptFor returns for how long an answer may be kept: until the first of its records
// expires (RFC 8484, section 5.1). One with a cookie is for one client alone.
func keptFor(answer []byte, cookie bool) string {
	seconds, ok := leastTTL(answer)
	if !ok || cookie {
		return "no-store"
	}
	return fmt.Sprintf("max-age=%d", seconds)
}

// leastTTL returns for how many seconds a message holds: the least of the answer's
// records, or if there are none, what the SOA record says of that (RFC 2308, section 5).
// It reports false for errors.
func leastTTL(msg []byte) (least uint32, ok bool) {
	if code := int(binary.BigEndian.Uint16(msg[2:]) & 0xF); code != dns.RcodeSuccess && code != dns.RcodeNameError {
		return 0, false
	}
	answers, authority := int(binary.BigEndian.Uint16(msg[6:])), int(binary.BigEndian.Uint16(msg[8:]))
	off := headerSize
	if binary.BigEndian.Uint16(msg[4:]) == 1 {
		off = skipName(msg, off) + 4
	}
	least = 1<<31 - 1
	for i := range answers + authority {
		r, next := readRecord(msg, off)
		if next == 0 {
			return 0, false
		}
		switch {
		case i < answers:
			least, ok = min(least, r.ttl), true
		case answers == 0 && r.rtype == dns.TypeSOA && len(r.data) >= 4:
			least, ok = min(r.ttl, binary.BigEndian.Uint32(r.data[len(r.data)-4:])), true
		}
		off = next
	}
	return least, ok
}

// wrongRequest is a request that is answered with a status alone.
type wrongRequest struct {
	status int
	text   string
}

var errMethod = &wrongRequest{http.StatusMethodNotAllowed, "Ask with GET or POST."}

// readRequest returns the message in a request (RFC 8484, section 4.1).
func readRequest(r *http.Request) ([]byte, *wrongRequest) {
	if r.TLS == nil {
		return nil, &wrongRequest{http.StatusForbidden, "Ask by https: here your question can be read on the way."}
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		msg, err := messageIn(r.URL.RawQuery)
		if err != nil {
			return nil, &wrongRequest{http.StatusBadRequest, "The query must be dns= and a message of the DNS in base64url, without padding (RFC 8484)."}
		}
		return msg, nil
	case http.MethodPost:
		return readBody(r)
	}
	return nil, errMethod
}

// messageIn returns the message in a query.
func messageIn(query string) ([]byte, error) {
	for field := range strings.SplitSeq(query, "&") {
		text, ok := strings.CutPrefix(field, "dns=")
		if !ok {
			continue
		}
		if strings.Contains(text, "%") {
			var err error
			if text, err = url.PathUnescape(text); err != nil {
				return nil, err
			}
		}
		msg, err := base64.RawURLEncoding.DecodeString(text)
		if len(msg) > maxMessage {
			return nil, errNoMessage
		}
		return msg, err
	}
	return nil, errNoMessage
}

// readBody returns the message that is the body of a request.
func readBody(r *http.Request) ([]byte, *wrongRequest) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != messageType {
		return nil, &wrongRequest{http.StatusUnsupportedMediaType, "Send a message of the DNS, as " + messageType + "."}
	}
	msg, err := io.ReadAll(io.LimitReader(r.Body, maxMessage+1))
	switch {
	case len(msg) > maxMessage:
		return nil, &wrongRequest{http.StatusRequestEntityTooLarge, "No message of the DNS is so long."}
	case err != nil:
		return nil, &wrongRequest{http.StatusBadRequest, "The message did not arrive."}
	}
	return msg, nil
}

func refuseHTTP(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, text, status)
}

// remoteOf returns the address of a client, IPv4 in four bytes.
func remoteOf(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
