package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/outbound"
)

const (
	// sendTime is how long a letter may take from the connection to the server's acceptance. A lease
	// of the queue lasts longer.
	sendTime = time.Minute

	// maxAnswers is how many bytes the mail server may send in one connection, with its part of TLS.
	maxAnswers = 128 << 10

	maxReason = 300 // bytes that are kept of what a server said
)

// Transport hands letters to the mail server.
type Transport struct {
	settings Settings
	patience time.Duration
}

// NewTransport makes a transport of valid settings.
func NewTransport(s Settings) (*Transport, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return &Transport{settings: s, patience: sendTime}, nil
}

// Send hands a letter to the server and returns when the server has accepted it. An error says
// whether another attempt makes sense; see [IsFinal].
func (t *Transport) Send(ctx context.Context, l *Letter) error {
	if err := l.check(); err != nil {
		return &finalError{err}
	}
	m, err := t.message(l)
	if err != nil {
		return &finalError{err}
	}
	ctx, stop := context.WithTimeout(ctx, t.patience)
	defer stop()
	c, err := t.client(ctx)
	if err != nil {
		return err
	}
	err = c.DialAndSendWithContext(ctx, m)
	if m.IsDelivered() {
		return nil // what failed came after the server had accepted the letter
	}
	return t.explain(err, l.To)
}

// Check connects and signs in as for a letter, and sends none.
func (t *Transport) Check(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, t.patience)
	defer stop()
	c, err := t.client(ctx)
	if err != nil {
		return err
	}
	s, err := c.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return t.explain(err, "")
	}
	_ = c.CloseWithSMTPClient(s) // the check is done
	return nil
}

// message makes the bytes of a letter. All headers are encoded by the library (RFC 2047).
func (t *Transport) message(l *Letter) (*gomail.Msg, error) {
	from, err := parseSender(t.settings.From)
	if err != nil {
		return nil, err
	}
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	m.FromMailAddress(from)
	if t.settings.ReplyTo != "" {
		reply, err := parseSender(t.settings.ReplyTo)
		if err != nil {
			return nil, err
		}
		m.ReplyToMailAddress(reply)
	}
	if err := m.To(l.To); err != nil {
		return nil, err
	}
	m.Subject(l.Subject)
	m.SetMessageIDWithValue(l.ID)
	m.SetDateWithValue(l.Date)
	// No program should answer it (RFC 3834, section 5).
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	if l.Language != "" {
		m.SetGenHeader("Content-Language", l.Language)
	}
	if l.Unsubscribe != "" {
		m.SetListUnsubscribe(l.Unsubscribe)
		if strings.HasPrefix(l.Unsubscribe, "https://") { // RFC 8058, section 3.1
			m.SetListUnsubscribePost()
		}
	}
	m.SetBodyString(gomail.TypeTextPlain, l.Text)
	if l.HTML != "" {
		m.AddAlternativeString(gomail.TypeTextHTML, l.HTML)
	}
	return m, nil
}

// client makes a client for one connection, which ends with the context.
func (t *Transport) client(ctx context.Context) (*gomail.Client, error) {
	host, port, err := net.SplitHostPort(t.settings.Server)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	secure := &tls.Config{ServerName: host, RootCAs: t.settings.Roots, MinVersion: tls.VersionTLS12}
	options := []gomail.Option{gomail.WithPort(number), gomail.WithTimeout(t.patience), gomail.WithTLSConfig(secure), gomail.WithoutNoop(),
		gomail.WithDialContextFunc(func(_ context.Context, network, address string) (net.Conn, error) {
			return t.dial(ctx, network, address, secure)
		})}
	switch t.settings.Security {
	case TLS:
		options = append(options, gomail.WithSSL())
	case NoTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if t.settings.User != "" {
		options = append(options, gomail.WithUsername(t.settings.User), gomail.WithPassword(t.settings.Password),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	return gomail.NewClient(host, options...)
}

// dial connects to the mail server. Only the operator names it, never a user, so it may be at any
// address: most stand in the network of the operator or on this machine.
func (t *Transport) dial(ctx context.Context, network, address string, secure *tls.Config) (net.Conn, error) {
	dialer := &outbound.Dialer{Rule: outbound.Rule{Any: true}, Timeout: t.patience}
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	// The library prolongs its deadlines with each command; this one holds for all of them.
	conn := &boundedConn{Conn: raw, left: maxAnswers}
	conn.stop = context.AfterFunc(ctx, func() { _ = raw.Close() })
	if t.settings.Security == NoTLS {
		if at, ok := raw.RemoteAddr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() { // of a name such as localhost
			_ = conn.Close()
			return nil, stele.Messagef("mail.not-encrypted", "mail is sent without encryption to a server on this machine only; {host} is not one, so use starttls or tls", address)
		}
	}
	if t.settings.Security != TLS {
		return conn, nil
	}
	encrypted := tls.Client(conn, secure)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return encrypted, nil
}

// boundedConn is a connection whose other side may send so much and no more: an answer without
// an end must not fill the memory.
type boundedConn struct {
	net.Conn
	left int
	stop func() bool
}

func (c *boundedConn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooMuch
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

func (c *boundedConn) Close() error {
	c.stop()
	return c.Conn.Close()
}

var errTooMuch = stele.Messagef("mail.server-answers-too-much", "the mail server answers too much")

// finalError is one after which another attempt makes no sense.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

// IsFinal reports whether a letter must not be tried again: the server refuses its recipient or its
// text for good, or it can't be a mail at all. A server that can't be reached, or that refuses us, is tried
// again, because its operator or ours will mend that.
func IsFinal(err error) bool {
	_, ok := errors.AsType[*finalError](err)
	return ok
}

// quotedLink is a one-time link or another credential of ours in an answer.
var quotedLink = regexp.MustCompile(`(?i)stele-[a-z]+(_|%5f)\S*`)

// explain returns what went wrong, in a few words of the server's. These are logged and shown, so
// they are without the address of the recipient and without links of the letter, which some servers repeat.
func (t *Transport) explain(err error, to string) error {
	if err == nil {
		return nil
	}
	said, final := err, false
	if sent, ok := errors.AsType[*gomail.SendError](err); ok {
		// A refusal of the sender, or by policy (530, X.7.Z), is about us and our settings.
		code, policy := sent.ErrorCode(), strings.HasPrefix(sent.EnhancedStatusCode(), "5.7.")
		final = (sent.Reason == gomail.ErrSMTPRcptTo || sent.Reason == gomail.ErrSMTPDataClose) && code > 530 && code < 600 && !policy
	} else if answer, ok := errors.AsType[*textproto.Error](err); ok {
		said = answer
	}
	text := Line(said.Error())
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, net.ErrClosed) {
		text = "it takes too long"
	} else if errors.Is(err, io.EOF) {
		text = "it closed the connection"
	}
	if i := strings.Index(text, ", affected "); i > 0 { // the recipient, which the caller knows
		text = text[:i]
	}
	if to != "" {
		text = strings.ReplaceAll(text, to, "...")
	}
	text = quotedLink.ReplaceAllString(text, "...")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "..."
	}
	told := refuse(stele.Unavailable, "mail.server-refused", "the mail server {server} did not take the mail: {reason}", t.settings.Server, text)
	if final {
		return &finalError{told}
	}
	return told
}
