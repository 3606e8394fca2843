package ask

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stele-id/stele/links"
)

// sayFTP returns the address of a server that answers commands as the test says, and closes the connection after an answer of 421.
func sayFTP(t *testing.T, greeting string, says map[string]string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				fmt.Fprintf(conn, "%s\r\n", greeting)
				for in := bufio.NewScanner(conn); in.Scan(); {
					verb, _, _ := strings.Cut(in.Text(), " ")
					reply := says[verb]
					if reply == "" {
						reply = map[string]string{"USER": "230 in", "TYPE": "200 ok", "CWD": "250 ok", "SIZE": "502 no", "MDTM": "502 no"}[verb]
					}
					if fmt.Fprintf(conn, "%s\r\n", reply); strings.HasPrefix(reply, "421") {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// TestFTPRefusals: a server that says no is there. It may say so for now, about the file, or about all who are not known.
func TestFTPRefusals(t *testing.T) {
	a := asker(t)
	for name, test := range map[string]struct {
		greeting string
		says     map[string]string
		state    links.State
		cause    links.Cause
	}{
		"no room":            {"421 too many users", nil, links.Unchecked, links.AskedToWait},
		"no room after that": {"220 hello", map[string]string{"EPSV": "421 bye"}, links.Unchecked, links.AskedToWait},
		"for now":            {"220 hello", map[string]string{"CWD": "450 busy"}, links.Unchecked, links.AskedToWait},
		"never":              {"500 go away", nil, links.Failing, links.BadStatus},
		"not this command":   {"220 hello", map[string]string{"EPSV": "502 no", "PASV": "502 no"}, links.Failing, links.BadStatus},
		"no such file":       {"220 hello", map[string]string{"CWD": "550 no"}, links.Failing, links.NotFound},
		"no login":           {"220 hello", map[string]string{"USER": "530 no"}, links.Blocked, links.NeedsAccess},
	} {
		answer, _ := a.Check(t.Context(), "ftp://"+sayFTP(t, test.greeting, test.says)+"/pub/x", Known{})
		e := judge(t, answer)
		var s links.Status
		var h links.Host
		now := a.o.Now()
		s.Add(&e, links.Target{}, now, now)
		if h.Add(&e, now); s.State != test.state || s.Cause != test.cause || h.Streak > 0 || h.Answered.IsZero() {
			t.Errorf("%s: %s (%s), failure %d, status %d; of the host %+v", name, s.State, s.Cause, answer.Failure, answer.Status, h)
		}
	}
	if answer, _ := a.Check(t.Context(), "ftp://"+sayFTP(t, "SSH-2.0-x", nil)+"/x", Known{}); answer.Failure != links.FailReset || answer.Status != 0 {
		t.Errorf("what does not speak FTP: failure %d, status %d", answer.Failure, answer.Status)
	}
}
