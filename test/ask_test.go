package test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// question is what a name server is asked.
type question struct{ name, kind string }

// reply is an answer, as far as servers must agree.
type reply struct {
	question question // of it, as it came back
	status   string   // NOERROR, NXDOMAIN, ...
	aa       bool     // the server speaks for the zone
	records  []string // owner, TTL, type and the data's bytes, in order
	soa      []string // the same of a negative answer
}

func (r reply) String() string {
	return fmt.Sprintf("%s %s: %s aa=%t\n  %s\n  soa %s", r.question.name, r.question.kind, r.status, r.aa,
		strings.Join(r.records, "\n  "), strings.Join(r.soa, "\n  "))
}

// remembered is what is left of replies that a resolver passes on, perhaps later.
func remembered(replies []reply) []reply {
	for i := range replies {
		r := &replies[i]
		r.aa, r.records, r.soa = false, withoutTTL(r.records), withoutTTL(r.soa)
	}
	return replies
}

func withoutTTL(records []string) (list []string) {
	for _, record := range records {
		words := strings.Fields(record)
		list = append(list, strings.Join(slices.Delete(words, 1, 2), " "))
	}
	return list
}

// asker is a program, or a library, that asks name servers.
type asker struct {
	name string
	ask  func(t *testing.T, s *nameServer, list []question) []reply
}

func askers() []asker {
	return []asker{
		{"dig", askDig},
		{"kdig", askKdig},
		{"the library over TCP", askLibrary},
	}
}

// askDig asks with dig of BIND, which prints data as bytes (RFC 3597).
func askDig(t *testing.T, s *nameServer, list []question) []reply {
	t.Helper()
	args := []string{"-r", "@127.0.0.1", "-p", strconv.Itoa(s.port), "+unknownformat", "+nosplit", "+time=10", "+nostats"}
	return askProgram(t, list, "dig", args)
}

// askKdig asks with kdig of Knot.
func askKdig(t *testing.T, s *nameServer, list []question) []reply {
	t.Helper()
	args := []string{"@127.0.0.1", "-p", strconv.Itoa(s.port), "+generic", "+timeout=10", "+edns", "+cookie", "+bufsize=1232"}
	return askProgram(t, list, "kdig", args)
}

func askProgram(t *testing.T, list []question, name string, args []string) (replies []reply) {
	t.Helper()
	// A command line does not take any number of words.
	for part := range slices.Chunk(list, 500) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		cmd := exec.CommandContext(ctx, name, args...)
		for _, q := range part {
			cmd.Args = append(cmd.Args, "-q", q.name, "-t", q.kind)
		}
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("%v: %v\n%.2000s", cmd.Args[:9], err, out)
		}
		got, err := readReplies(string(out))
		if err == nil && len(got) != len(part) {
			err = fmt.Errorf("%d replies to %d questions", len(got), len(part))
		}
		if err != nil {
			t.Fatalf("%s: %v\n%.2000s", name, err, out)
		}
		for i := range got {
			got[i].question = part[i]
		}
		replies = append(replies, got...)
	}
	return replies
}

var (
	headLine  = regexp.MustCompile(`^;; ->>HEADER<<- opcode: QUERY[,;] status: (\w+)`)
	flagsLine = regexp.MustCompile(`^;; [Ff]lags: ([a-z ]+);`)
	dataLine  = regexp.MustCompile(`^(\S+)\s+(\d+)\s+(?:CLASS1|IN)\s+(TYPE\d+)\s+\\# \d+ ?([0-9A-F]*)$`)
)

// readReplies reads what dig and kdig print.
func readReplies(text string) (list []reply, err error) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := headLine.FindStringSubmatch(line); m != nil {
			list, section = append(list, reply{status: m[1]}), ""
		}
		if len(list) == 0 {
			continue
		}
		last := &list[len(list)-1]
		if m := flagsLine.FindStringSubmatch(line); m != nil {
			last.aa = slices.Contains(strings.Fields(m[1]), "aa")
		}
		if rest, ok := strings.CutPrefix(line, ";; "); ok {
			section, _, _ = strings.Cut(rest, " SECTION")
		}
		if line == "" || line[0] == ';' {
			continue
		}
		m := dataLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("what is %q?", line)
		}
		last.add(section, m[1], m[2], m[3], m[4])
	}
	for i := range list {
		slices.Sort(list[i].records)
	}
	return list, nil
}

// add adds a record. Beside the answer only the zone's SOA counts: which other
// records a server adds is its own business.
func (r *reply) add(section, owner, ttl, kind, data string) {
	record := strings.Join([]string{owner, ttl, kind, data}, " ")
	switch {
	case section == "ANSWER":
		r.records = append(r.records, record)
	case section == "AUTHORITY" && kind == "TYPE6":
		r.soa = append(r.soa, record)
	}
}

// askLibrary asks all questions on one TCP connection.
func askLibrary(t *testing.T, s *nameServer, list []question) (replies []reply) {
	t.Helper()
	client := &dns.Client{Net: "tcp", Timeout: 10 * time.Second}
	var conn *dns.Conn
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	for _, q := range list {
		kind, ok := dns.StringToType[q.kind]
		if !ok {
			t.Fatalf("what is %s?", q.kind)
		}
		answer, err := s.exchange(client, &conn, new(dns.Msg).SetQuestion(q.name, kind))
		if err != nil {
			t.Fatalf("%s: %v: %v", s.name, q, err)
		}
		r, err := libraryReply(answer)
		if err != nil {
			t.Fatalf("%s: %v: %v", s.name, q, err)
		}
		r.question = q
		replies = append(replies, r)
	}
	return replies
}

// exchange asks over conn, and makes a connection where there is none. A server that loads
// a zone may close connections: NSD replaces the processes that hold them. The question is
// then asked again over a new connection, as resolvers do (RFC 7766, section 6.2.4).
func (s *nameServer) exchange(client *dns.Client, conn **dns.Conn, m *dns.Msg) (answer *dns.Msg, err error) {
	for range 10 {
		if *conn == nil {
			if *conn, err = client.Dial(s.addr); err != nil {
				return nil, err
			}
		}
		if answer, _, err = client.ExchangeWithConn(m, *conn); err == nil {
			return answer, nil
		}
		(*conn).Close()
		*conn = nil
		if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.EOF) {
			break
		}
	}
	return nil, err
}

// libraryReply makes a reply of a message.
func libraryReply(m *dns.Msg) (r reply, err error) {
	r = reply{status: dns.RcodeToString[m.Rcode], aa: m.Authoritative}
	for section, list := range map[string][]dns.RR{"ANSWER": m.Answer, "AUTHORITY": m.Ns} {
		for _, rr := range list {
			unknown := &dns.RFC3597{}
			if err := unknown.ToRFC3597(rr); err != nil {
				return r, err
			}
			h := rr.Header()
			r.add(section, h.Name, strconv.Itoa(int(h.Ttl)), "TYPE"+strconv.Itoa(int(h.Rrtype)), strings.ToUpper(unknown.Rdata))
		}
	}
	slices.Sort(r.records)
	if m.Truncated {
		return r, errors.New("the answer is cut off")
	}
	return r, nil
}
