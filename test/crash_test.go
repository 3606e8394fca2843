package test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	vocabulary "github.com/stele-id/stele"
)

// crashRounds is how often the process is killed: 15 times, or as often as `make soak`
// asks for.
func crashRounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("STELE_CRASH_ROUNDS")
	if text == "" {
		return 15
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCrash kills a process that makes names, registers, changes and imports, all at
// once, and looks whether everything that it acknowledged is there, whether a name was
// given twice, and whether the store is whole.
func TestCrash(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var l *acknowledged
	// Where the machine is busy, a process does little before it is killed: then there are more rounds, and it gets more time.
	for rounds, round := crashRounds(t), 0; round < rounds || l.isLittle() && round < 10*rounds; round++ {
		if round%50 == 0 { // so that a long soak does not slow down
			l.checkAll(t)
			l = &acknowledged{folder: filepath.Join(t.TempDir(), "data"), names: make(map[string]bool), puts: make(map[string]put)}
		}
		lines := runAndKill(t, l.folder, random, time.Duration(1+round/rounds)*500*time.Millisecond)
		l.check(t, lines)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	l.checkAll(t)
	t.Logf("%d names, %d records, %d changes", len(l.names), len(l.puts), l.changes)
	if l.isLittle() {
		t.Error("the processes did next to nothing before they were killed")
	}
}

// isLittle reports whether the processes did too little for a test of what they leave.
func (l *acknowledged) isLittle() bool { return len(l.puts) < 100 || l.changes < 100 }

// runAndKill starts the process, kills it at a random moment within a while, and returns
// the lines that it wrote. Half of the moments are counted from its start, so that some
// are while it recovers from the kill before.
func runAndKill(t *testing.T, folder string, random *rand.Rand, within time.Duration) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(environ(), crashEnv+"="+folder)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait := time.Duration(random.Int64N(int64(within)))
	in := bufio.NewReader(out)
	stuck := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	if random.IntN(2) == 0 {
		if _, err := in.Peek(1); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	timer := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the process ended by itself: %v\n%s", err, failure.String())
	}
	lines := strings.Split(string(text), "\n")
	return lines[:len(lines)-1] // what has no end was not acknowledged
}

// put is a version of a record that was acknowledged.
type put struct {
	version uint64
	url     string
}

// acknowledged is what processes acknowledged.
type acknowledged struct {
	folder  string
	names   map[string]bool // that were made
	puts    map[string]put  // by identifier: the greatest version
	changes uint64
}

// check looks for all that the lines acknowledge.
func (l *acknowledged) check(t *testing.T, lines []string) {
	t.Helper()
	r := l.open(t)
	defer r.close(t)
	for _, line := range lines {
		words := strings.Fields(line)
		switch words[0] {
		case "mint":
			l.give(t, words[1:]...)
		case "made":
			l.give(t, words[2:]...)
			for _, name := range words[2:] {
				r.has(t, name, 1, words[1])
			}
			l.puts[words[2]] = put{1, words[1]}
		case "put":
			version, err := strconv.ParseUint(words[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			r.has(t, words[1], version, words[3])
			if version > l.puts[words[1]].version {
				l.puts[words[1]] = put{version, words[3]}
			}
		case "chunk":
			r.hasChunk(t, words[1], words[2], words[3])
		case "space":
			r.hasSpace(t, words[1], words[2])
		default:
			t.Fatalf("the process wrote %q", line)
		}
	}
	l.verify(t, r)
}

// verify checks the store, and makes a few names more.
func (l *acknowledged) verify(t *testing.T, r *registry) {
	t.Helper()
	report := func(problem *vocabulary.Message) { t.Errorf("after the crash: %s", problem) }
	if err := r.store.Verify(r.ctx, report); err != nil {
		t.Fatal(err)
	}
	if err := r.registrar.Verify(r.ctx, report); err != nil {
		t.Fatal(err)
	}
	last, err := r.store.LastChange(r.ctx)
	if err != nil || last < l.changes {
		t.Errorf("the last change is %d, and was %d: %v", last, l.changes, err)
	}
	l.changes = last
	for i := range 3 {
		labels, err := r.registrar.Mint(r.ctx, crashSpaces[i].Key(), 5)
		if errors.Is(err, vocabulary.NotFound) {
			return // it was killed before it had made the namespaces
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, label := range labels {
			l.give(t, label.ID.String())
		}
	}
}

// checkAll looks once more for all that was ever acknowledged.
func (l *acknowledged) checkAll(t *testing.T) {
	t.Helper()
	if l == nil {
		return
	}
	r := l.open(t)
	defer r.close(t)
	for id, p := range l.puts {
		r.has(t, id, p.version, p.url)
	}
}

// give notes names that were made, and none of them may be there yet.
func (l *acknowledged) give(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if l.names[name] {
			t.Errorf("%s was given twice", name)
		}
		l.names[name] = true
	}
}

func (l *acknowledged) open(t *testing.T) *registry {
	t.Helper()
	r, err := openRegistry(context.WithoutCancel(t.Context()), l.folder)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *registry) close(t *testing.T) {
	t.Helper()
	if err := r.store.Close(); err != nil {
		t.Error(err)
	}
}

// has looks for a version of the record that has a name.
func (r *registry) has(t *testing.T, name string, version uint64, url string) {
	t.Helper()
	id, err := r.schemes.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := r.store.Record(r.ctx, id)
	if err != nil {
		t.Errorf("%s, version %d, was acknowledged: %v", name, version, err)
		return
	}
	for v, err := range r.store.History(r.ctx, rec.ID) {
		if err != nil {
			t.Fatal(err)
		}
		if v.Version == version {
			if len(v.Targets) != 1 || v.Targets[0].URL != url {
				t.Errorf("%s, version %d, points at %v, not at %s", name, version, v.Targets, url)
			}
			return
		}
	}
	t.Errorf("%s, version %d, was acknowledged, and is not there", name, version)
}

// hasChunk looks for the records of an import, and its bookmark.
func (r *registry) hasChunk(t *testing.T, run, chunk, size string) {
	t.Helper()
	mark, err := r.registrar.Bookmark(r.ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	n, err1 := strconv.Atoi(chunk)
	at, err2 := strconv.Atoi(string(mark))
	records, err3 := strconv.Atoi(size)
	if err := errors.Join(err1, err2, err3); err != nil || at < n {
		t.Errorf("chunk %s of %s was acknowledged, and the bookmark is %q: %v", chunk, run, mark, err)
	}
	for i := range records {
		id := "urn:x1:chunk-" + run + "-" + chunk + "-" + strconv.Itoa(i)
		r.has(t, id, 1, "https://example.org/"+id)
	}
}

func (r *registry) hasSpace(t *testing.T, index, version string) {
	t.Helper()
	i, err1 := strconv.Atoi(index)
	v, err2 := strconv.ParseUint(version, 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	ns, err := r.store.Namespace(r.ctx, crashSpaces[i].Key())
	if err != nil || ns.Version < v {
		t.Errorf("version %d of the namespace %s was acknowledged, and is not there: %v", v, crashSpaces[i].Key(), err)
	}
}
