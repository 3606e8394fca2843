package audit

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/outbound"
)

// Syslog sends entries to a syslog daemon in the form of RFC 5424, with the facility 13
// (log audit). The message is the JSON of the entry, so that no text in an entry can begin
// another message.
type Syslog struct {
	network, address string
	host             string
	process          string

	mu   sync.Mutex
	conn net.Conn

	// last is what was sent last over a stream. If the stream breaks, the daemon may not
	// have read it, so it is sent again over the next one.
	last []*stele.AuditEntry
	gone chan struct{} // closed when the daemon has closed the stream; nil if there is none
}

// ParseSyslog reads where entries are sent: the path of a local socket, /dev/log, or
// udp://HOST:PORT, or tcp://HOST:PORT.
func ParseSyslog(text string) (network, address string, err error) {
	if strings.HasPrefix(text, "/") {
		return "unixgram", text, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "udp" && u.Scheme != "tcp" || u.Hostname() == "" || u.Port() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return "", "", stele.Messagef("audit.syslog-address-wrong", "write the path of a socket, such as /dev/log, or udp://HOST:PORT, or tcp://HOST:PORT")
	}
	return u.Scheme, u.Host, nil
}

// NewSyslog returns a sender to a place as ParseSyslog reads it. Host and process are how
// the messages name their sender. It connects when there is something to send.
func NewSyslog(place, host, process string) (*Syslog, error) {
	network, address, err := ParseSyslog(place)
	if err != nil {
		return nil, &stele.Error{Op: "audit", Kind: stele.Invalid, Err: err}
	}
	return &Syslog{network: network, address: address, host: header(host), process: header(process)}, nil
}

// header makes a text fit for a field of a message's head: visible ASCII, RFC 5424,
// section 6.2.
func header(text string) string {
	clean := strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return -1
		}
		return c
	}, text)
	if clean == "" {
		return "-"
	}
	return clean[:min(len(clean), 128)]
}

// Message returns an entry as a message of RFC 5424.
func (s *Syslog) Message(e *stele.AuditEntry) []byte {
	const audit, notice, warning = 13, 5, 4
	severity := notice
	if e.Outcome != stele.AuditDone {
		severity = warning
	}
	b := fmt.Appendf(nil, "<%d>1 %s %s stele %s audit - ", audit*8+severity, e.At.UTC().Format("2006-01-02T15:04:05.000000Z"), s.host, s.process)
	return append(b, JSON(e)...)
}

// sendTimeout is how long one message may take.
const sendTimeout = 5 * time.Second

// Send sends entries. If there is an error, some may have been sent.
func (s *Syslog) Send(ctx context.Context, list []*stele.AuditEntry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.gone:
		_ = s.conn.Close() // it is closed at the other end
		s.conn, s.gone = nil, nil
	default:
	}
	before := s.last
	if s.conn == nil {
		list, before = append(slices.Clip(before), list...), nil
	}
	for _, e := range list {
		if err := s.send(ctx, s.Message(e)); err != nil {
			return err // the caller sends its entries again
		}
	}
	if s.isStream() {
		both := slices.Concat(before, list)
		s.last = both[max(0, len(both)-resent):]
	}
	return nil
}

// resent is how many entries are sent again, at most, after a stream broke.
const resent = 200

func (s *Syslog) send(ctx context.Context, message []byte) (err error) {
	if s.conn == nil {
		if s.conn, err = s.dial(ctx); err != nil {
			return err
		}
		if s.isStream() {
			s.gone = make(chan struct{})
			go watch(s.conn, s.gone)
		}
	}
	if s.isStream() { // octet counting: RFC 6587, section 3.4.1
		message = append(fmt.Appendf(nil, "%d ", len(message)), message...)
	}
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Close() })
	defer stop()
	if d, ok := s.conn.(interface{ SetWriteDeadline(time.Time) error }); ok {
		if deadline, bounded := ctx.Deadline(); bounded {
			_ = d.SetWriteDeadline(deadline) // it fails only if the connection has no deadlines
		}
	}
	if _, err = s.conn.Write(message); err != nil {
		_ = s.conn.Close()
		s.conn, s.gone = nil, nil
	}
	return err
}

// watch closes gone when a stream ends, also when it is closed here. A syslog daemon sends
// nothing, so the first thing to read is the end.
func watch(conn net.Conn, gone chan<- struct{}) {
	_, _ = io.Copy(io.Discard, conn)
	close(gone)
}

func (s *Syslog) isStream() bool {
	switch s.conn.LocalAddr().Network() {
	case "tcp", "unix":
		return true
	}
	return false
}

func (s *Syslog) dial(ctx context.Context) (net.Conn, error) {
	// The operator names the daemon, which is mostly in a private network.
	d := outbound.Dialer{Rule: outbound.Rule{Any: true}, Timeout: sendTimeout}
	conn, err := d.DialContext(ctx, s.network, s.address)
	if err != nil && s.network == "unixgram" {
		if stream, serr := d.DialContext(ctx, "unix", s.address); serr == nil {
			return stream, nil
		}
	}
	return conn, err
}

// Close closes the connection.
func (s *Syslog) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil
	}
	conn := s.conn
	s.conn, s.gone = nil, nil
	return conn.Close()
}
