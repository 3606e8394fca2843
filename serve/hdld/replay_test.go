package hdld

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/wire/hdl"
)

// exchange is what a client and a server of the recordings said to each other.
type exchange struct {
	title string
	steps []step
	keys  map[uint32][]byte // of sessions
}

// step is a request with the messages of its answer, whole.
type step struct {
	via     transport
	request []byte
	answers [][]byte
}

// exchanges reads a recording.
func exchanges(t testing.TB, name string) (list []*exchange) {
	t.Helper()
	var at *exchange
	keys := make(map[uint32][]byte)
	parts := hdl.NewCollector(hdl.DefaultLimits())
	from := netip.MustParseAddrPort("127.0.0.1:2641")
	for _, line := range lines(t, name) {
		if rest, ok := strings.CutPrefix(line, "### ^ session "); ok {
			var number, algorithm uint32
			var key string
			if _, err := fmt.Sscanf(rest, "%d algorithm %d key %s", &number, &algorithm, &key); err != nil {
				t.Fatal(err)
			}
			keys[number] = unhex(t, key)
			continue
		}
		if title, ok := strings.CutPrefix(line, "### "); ok {
			at = &exchange{title: title, keys: keys}
			list = append(list, at)
			continue
		}
		f := strings.Fields(line)
		if len(f) != 3 || len(f[0]) != 4 || strings.HasPrefix(line, ";") || strings.HasPrefix(line, "#") {
			continue
		}
		if at == nil {
			at = &exchange{title: name, keys: keys}
			list = append(list, at)
		}
		via := map[string]transport{"UDP": viaUDP, "TCP": viaTCP}[f[0][:3]]
		octets := unhex(t, f[2])
		if via == viaUDP {
			whole, err := parts.Add(time.Now(), from, octets)
			if whole == nil && err == nil {
				continue
			}
			if err == nil {
				octets = bytes.Clone(whole)
			}
		}
		if f[0][3] == '>' {
			at.steps = append(at.steps, step{via: via, request: octets})
		} else if n := len(at.steps); n > 0 {
			at.steps[n-1].answers = append(at.steps[n-1].answers, octets)
		}
	}
	return list
}

// differs are exchanges whose answers must be others here, and why.
var differs = map[string]string{
	"create, RSA key with index 0 (no index), no session": "the reference refuses what it accepts in a session (section 10); here both are accepted",
	"backup (1003) by the administrator":                  "a backup of this server is made by 'stele backup'",
}

// TestReplay: the recorded requests, on the recorded records, give the recorded answers. Random numbers of
// the server are those of the recording, so that the client's proofs hold; what must differ is masked.
func TestReplay(t *testing.T) {
	replay(t, "wire-9.2.0.txt")
}

func replay(t *testing.T, name string) {
	f := newFixture(t)
	count := 0
	for _, x := range exchanges(t, name) {
		if len(x.steps) == 0 || differs[x.title] != "" {
			continue
		}
		f.uuid = minted(t, x)
		t.Run(x.title, func(t *testing.T) {
			for i := range x.steps {
				f.step(t, x, &x.steps[i])
				count++
			}
		})
	}
	if count < 10 {
		t.Errorf("%d requests were replayed", count)
	}
	ways := make(map[string]int)
	for item, err := range f.registrar.Audit(f.admin, registrar.AuditQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e := item.Entry; e != nil && e.By != "" && e.By != auth.Local().Name {
			ways[e.Via]++
		}
	}
	if len(ways) != 1 || ways["handle"] == 0 {
		t.Errorf("the audit trail says that the changes came in by %v", ways)
	}
}

// TestReplayDiffers: what is answered in another way than in the recordings, in which step and how. Decision 72 says why. All other
// answers of these exchanges are the recorded ones.
func TestReplayDiffers(t *testing.T) {
	want := map[string][]string{
		// The client proves by a signature that it has the key of 0.NA/20.500.99999. The reference finds that right in a session, and
		// refuses it here.
		"create, RSA key with index 0 (no index), no session": {"402", "400, here 1"},
		// The first three come over UDP, which is not an interface for administration. Over TCP the operation is not supported here, so that
		// there is no challenge, and the client's answer to it is one to no challenge.
		"backup (1003) by the administrator": {"4", "4", "4", "402, here 5", "1, here 405"},
	}
	for _, x := range exchanges(t, "wire-9.2.0.txt") {
		list, ok := want[x.title]
		if !ok {
			continue
		}
		if differs[x.title] == "" {
			t.Errorf("%s: no reason is given", x.title)
		}
		delete(want, x.title)
		f := newFixture(t)
		var told []string
		for i := range x.steps {
			s := &x.steps[i]
			for _, answer := range s.answers {
				f.foresee(t, x, answer)
			}
			var got [][]byte
			f.answer(t.Context(), &call{raw: s.request, via: s.via, from: netip.MustParseAddrPort("127.0.0.1:40000"), send: func(b []byte) error {
				got = append(got, bytes.Clone(b))
				return nil
			}})
			for _, answer := range s.answers {
				f.adopt(t, x, answer)
			}
			if len(got) != 1 || len(s.answers) != 1 {
				t.Fatalf("%s, step %d: %d answers, recorded %d", x.title, i, len(got), len(s.answers))
			}
			have, err := hdl.Parse(got[0])
			if err != nil {
				t.Fatal(err)
			}
			recorded, err := hdl.Parse(s.answers[0])
			if err != nil {
				t.Fatal(err)
			}
			line := fmt.Sprint(uint32(recorded.Header.Response))
			if have.Header.Response != recorded.Header.Response {
				line += fmt.Sprintf(", here %d", have.Header.Response)
			} else if a, b := f.masked(t, x, got[0]), f.masked(t, x, s.answers[0]); a != b {
				t.Errorf("%s, step %d\ngot  %s\nwant %s", x.title, i, a, b)
			}
			told = append(told, line)
		}
		if !slices.Equal(told, list) {
			t.Errorf("%s:\ngot  %q\nwant %q", x.title, told, list)
		}
	}
	if len(want) > 0 {
		t.Errorf("the recordings have no %v", want)
	}
}

// step sends one request, and compares the answer.
func (f *fixture) step(t *testing.T, x *exchange, s *step) {
	t.Helper()
	for _, answer := range s.answers {
		f.foresee(t, x, answer)
	}
	var got [][]byte
	f.answer(t.Context(), &call{raw: s.request, via: s.via, from: netip.MustParseAddrPort("127.0.0.1:40000"), send: func(b []byte) error {
		got = append(got, bytes.Clone(b))
		return nil
	}})
	for _, answer := range s.answers {
		f.adopt(t, x, answer)
	}
	if s.answers == nil {
		return // the recording has none
	}
	if len(got) != len(s.answers) {
		t.Fatalf("%d messages are the answer, want %d", len(got), len(s.answers))
	}
	for i := range got {
		have, want := f.masked(t, x, got[i]), f.masked(t, x, s.answers[i])
		if have != want {
			t.Errorf("the answer differs\ngot  %s\nwant %s", have, want)
		}
	}
}

// foresee makes the server choose the random numbers that the recorded answer has.
func (f *fixture) foresee(t *testing.T, x *exchange, answer []byte) {
	t.Helper()
	m := f.read(t, x, answer)
	f.script.nonces, f.script.numbers = nil, nil
	switch {
	case m.Header.Response == hdl.Challenged:
		nonce, _, err := hdl.ChallengeOf(&m)
		if err != nil {
			t.Fatal(err)
		}
		f.script.nonces = append(f.script.nonces, nonce)
		f.script.numbers = append(f.script.numbers, m.Envelope.Session)
	case m.Header.Operation == hdl.SetUpSession:
		f.script.numbers = append(f.script.numbers, m.Envelope.Session)
	}
}

// minted returns the UUID at the end of the name that the recorded server minted.
func minted(t *testing.T, x *exchange) string {
	t.Helper()
	last := x.steps[len(x.steps)-1].answers
	if len(last) == 0 {
		return ""
	}
	m, err := hdl.Parse(last[0])
	if err != nil {
		t.Fatal(err)
	}
	var body hdl.HandleBody
	if m.Header.Flags&hdl.MintSuffix == 0 || body.Decode(m.Body) != nil {
		return ""
	}
	const size = 36
	return string(body.Handle[len(body.Handle)-size:])
}

// adopt gives a session that was set up the key of the recording: the recorded client computed its codes with it.
func (f *fixture) adopt(t *testing.T, x *exchange, answer []byte) {
	t.Helper()
	m := f.read(t, x, answer)
	if m.Header.Operation != hdl.SetUpSession {
		return
	}
	n := f.sessions.find(m.Envelope.Session, f.now())
	if n == nil {
		t.Fatalf("there is no session %d", m.Envelope.Session)
	}
	if key := x.keys[n.id]; key != nil {
		n.key = key
	}
}

// read reads a message, decrypted.
func (f *fixture) read(t *testing.T, x *exchange, octets []byte) hdl.Message {
	t.Helper()
	m, err := hdl.Parse(octets)
	if err != nil {
		t.Fatal(err)
	}
	if m.Envelope.Encrypted {
		if err := m.Open(hdl.AES, x.keys[m.Envelope.Session]); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// masked returns an answer as text, without what must differ: when it ends, the server's public number, times of
// values that were written now, and signatures, which are verified instead.
func (f *fixture) masked(t *testing.T, x *exchange, octets []byte) string {
	t.Helper()
	m := f.read(t, x, octets)
	encrypted := m.Envelope.Encrypted
	proof := "none"
	if m.Credential != nil {
		proof = string(m.Credential.Type) + " " + string(m.Credential.Algorithm) + fmt.Sprint(" ", m.Credential.Counter)
		var err error
		if string(m.Credential.Type) == hdl.TypeMAC {
			err = m.VerifyMAC(x.keys[m.Envelope.Session])
		} else {
			err = m.VerifySignature(&f.public)
		}
		if err != nil {
			t.Errorf("the credential is wrong: %v", err)
		}
	}
	body := bytes.Clone(m.Body)
	if m.Header.Operation == hdl.SetUpSession && m.Header.Response == hdl.Success {
		digest, _, err := hdl.SplitDigest(&m)
		if err != nil {
			t.Error(err)
		}
		body = digest.Append(nil) // the server's number is its own
	}
	if m.Header.Operation == hdl.Resolve && m.Header.Response == hdl.Success {
		body = maskTimes(t, &m)
	}
	e := m.Envelope
	return fmt.Sprintf("%d.%d suggests %d.%d session %d request %x encrypted %t | operation %d code %d flags %08x serial %x | %x %q | %s",
		e.Version.Major, e.Version.Minor, e.Suggested.Major, e.Suggested.Minor, e.Session, e.Request, encrypted,
		m.Header.Operation, m.Header.Response, uint32(m.Header.Flags), m.Header.SiteSerial, body, body, proof)
}

// maskTimes sets the times of values to zero that are not those of the seeds.
func maskTimes(t *testing.T, m *hdl.Message) []byte {
	t.Helper()
	digest, rest, err := hdl.SplitDigest(m)
	if err != nil {
		t.Error(err)
	}
	var body hdl.ValuesBody
	if err := body.Decode(rest); err != nil {
		t.Error(err)
	}
	for i := range body.Values {
		if v := &body.Values[i]; v.Timestamp != 1700000000 {
			v.Timestamp = 0
		}
	}
	return append(digest.Append(nil), body.Append(nil, m.Envelope.Version)...)
}
