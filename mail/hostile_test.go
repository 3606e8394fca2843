package mail

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fake is a mail server without TLS that follows a script: what it answers to each command.
func fake(t *testing.T, serve func(conn net.Conn, in *bufio.Reader)) Settings {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn, bufio.NewReader(conn))
			}()
		}
	}()
	return Settings{Server: l.Addr().String(), Security: NoTLS, From: "ids@example.org"}
}

// polite answers as a mail server does; answer may replace the answer to a command ("DATA." is the end of the text).
func polite(answer func(command string) string) func(net.Conn, *bufio.Reader) {
	return func(conn net.Conn, in *bufio.Reader) {
		say := func(command, text string) {
			if other := answer(command); other != "" {
				text = other
			}
			_, _ = io.WriteString(conn, text+"\r\n")
		}
		say("", "220 fake")
		data := false
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			command, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case data && strings.TrimSpace(line) == ".":
				data = false
				say("DATA.", "250 taken")
			case data:
			case command == "DATA":
				data = true
				say(command, "354 go on")
			case command == "QUIT":
				say(command, "221 bye")
				return
			default:
				say(command, "250 fine")
			}
		}
	}
}

// TestHostile: a mail server that answers garbage, without an end or not at all costs an attempt and no more.
func TestHostile(t *testing.T) {
	letter := &Letter{ID: "1@example.org", To: "ann@example.org", Subject: "s", Text: "t", HTML: "<p>t</p>"}
	for name, tt := range map[string]struct {
		serve func(net.Conn, *bufio.Reader)
		final bool
		works bool
	}{
		"polite":             {polite(func(string) string { return "" }), false, true},
		"garbage":            {func(c net.Conn, _ *bufio.Reader) { _, _ = io.WriteString(c, "\x00\xff<html>\r\n\r\n") }, false, false},
		"no greeting":        {func(c net.Conn, in *bufio.Reader) { _, _ = in.ReadByte() }, false, false},
		"closes":             {func(c net.Conn, _ *bufio.Reader) {}, false, false},
		"line without end":   {func(c net.Conn, _ *bufio.Reader) { flood(c, strings.Repeat("2", 1<<16)) }, false, false},
		"answer without end": {func(c net.Conn, _ *bufio.Reader) { flood(c, "220-more\r\n") }, false, false},
		"hangs after DATA":   {polite(func(s string) string { return map[string]string{"DATA.": "250-"}[s] }), false, false},
		"temporary":          {polite(func(s string) string { return map[string]string{"RCPT": "450 later"}[s] }), false, false},
		"temporary text":     {polite(func(s string) string { return map[string]string{"DATA.": "451 later"}[s] }), false, false},
		"permanent":          {polite(func(s string) string { return map[string]string{"RCPT": "550 no"}[s] }), true, false},
		"permanent text":     {polite(func(s string) string { return map[string]string{"DATA.": "554 spam"}[s] }), true, false},
		"sender refused":     {polite(func(s string) string { return map[string]string{"MAIL": "550 who are you"}[s] }), false, false},
		"quits rudely":       {polite(func(s string) string { return map[string]string{"RSET": "500 what", "QUIT": "500 what"}[s] }), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport, err := NewTransport(fake(t, tt.serve))
			if err != nil {
				t.Fatal(err)
			}
			transport.patience = 500 * time.Millisecond
			if name == "polite" || tt.works || tt.final {
				transport.patience = time.Minute
			}
			l := *letter
			err = transport.Send(t.Context(), &l)
			if (err == nil) != tt.works || IsFinal(err) != tt.final {
				t.Errorf("%v, final %t", err, IsFinal(err))
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func flood(c net.Conn, text string) {
	for {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// TestLoopbackOnly: nothing is sent without encryption to another machine.
func TestLoopbackOnly(t *testing.T) {
	for _, server := range []string{"mail.example.org:25", "192.0.2.1:25", "127.0.0.1.example.org:25", "[2001:db8::1]:25", ":25", ""} {
		if _, err := NewTransport(Settings{Server: server, Security: NoTLS, From: "ids@example.org"}); err == nil {
			t.Errorf("%q is taken", server)
		}
	}
	for _, server := range []string{"localhost:25", "127.0.0.1:25", "[::1]:25"} {
		if _, err := NewTransport(Settings{Server: server, Security: NoTLS, From: "ids@example.org"}); err != nil {
			t.Errorf("%q: %v", server, err)
		}
	}
	// A server that offers no STARTTLS gets neither password nor mail.
	var said atomic.Bool
	s := fake(t, polite(func(command string) string {
		if command == "AUTH" || command == "MAIL" {
			said.Store(true)
		}
		return ""
	}))
	s.Security, s.User, s.Password = StartTLS, "u", "p"
	transport, err := NewTransport(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := transport.Send(context.Background(), &Letter{ID: "1@x.org", To: "ann@example.org", Subject: "s", Text: "t"}); err == nil || said.Load() {
		t.Errorf("sent without STARTTLS: %v", err)
	}
}
