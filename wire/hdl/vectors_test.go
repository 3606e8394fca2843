package hdl_test

import (
	"bufio"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// recorded is a message, or a fragment of one, of a recording.
type recorded struct {
	file      string
	line      int
	title     string // of the exchange
	transport string // UDP, TCP, HTTP
	request   bool
	octets    []byte
	decrypted []byte // what the recording says of an encrypted message
}

// recordings reads all recorded messages, and the session keys by file and number of the session.
func recordings(t testing.TB) ([]recorded, map[string][]byte) {
	var all []recorded
	keys := make(map[string][]byte)
	for _, name := range []string{"native-9.2.0.txt", "native-client9.2-server7.3.1.txt", "wire-9.2.0.txt", "wire-client7.3.1-server9.2.0.txt"} {
		title := ""
		for n, line := range lines(t, name) {
			if rest, ok := strings.CutPrefix(line, "### ^ session "); ok {
				f := strings.Fields(rest)
				keys[name+" "+f[0]] = unhex(t, f[len(f)-1])
				continue
			}
			if rest, ok := strings.CutPrefix(line, "### "); ok {
				title = rest
				continue
			}
			if rest, ok := strings.CutPrefix(line, "; decrypted = "); ok {
				all[len(all)-1].decrypted = unhex(t, rest)
				continue
			}
			f := strings.Fields(line)
			if len(f) < 3 || len(f[0]) < 4 || f[0][0] == '#' || f[0][0] == ';' {
				continue
			}
			m := recorded{file: name, line: n + 1, title: title, transport: strings.TrimRight(f[0], "<>"), request: strings.HasSuffix(f[0], ">")}
			m.octets = unhex(t, f[len(f)-1])
			if m.transport != "HTTP" && strconv.Itoa(len(m.octets)) != f[1] {
				t.Fatalf("%s:%d: %d octets, and the line says %s", name, n+1, len(m.octets), f[1])
			}
			all = append(all, m)
		}
	}
	return all, keys
}

// vectors reads a file of lines "name = hex".
func vectors(t testing.TB, name string) map[string][]byte {
	all := make(map[string][]byte)
	for _, line := range lines(t, name) {
		key, value, ok := strings.Cut(line, " = ")
		if b, err := hex.DecodeString(value); ok && err == nil && !strings.HasPrefix(line, "#") {
			all[key] = b
		}
	}
	return all
}

func lines(t testing.TB, name string) []string {
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []string
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		all = append(all, s.Text())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
