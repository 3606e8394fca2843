// Package witness is both ends of the protocol by which witnesses co-sign the checkpoints of transparency logs (C2SP tlog-witness). A
// [Witness] looks after the logs of others: it co-signs a checkpoint only if the log has grown from the one that it co-signed before, so
// that a log can't show one history to some readers and another to the rest. A [Collector] asks witnesses to co-sign the checkpoints of
// our own log.
//
// Decision 75 says how a witness treats a log that goes on after a restore. The package reads no registry and opens no listener.
package witness

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/transparency"
)

// Options of a witness.
type Options struct {
	Key  transparency.WitnessKey
	Logs []transparency.PublicKey // that it co-signs; several with one name are keys of one log
	File *File                    // that keeps what was co-signed
	Now  func() time.Time
	Log  *slog.Logger
}

// Witness co-signs checkpoints. It is an [http.Handler], whose requests may come at once.
type Witness struct {
	o Options

	// One request at a time is compared with what was co-signed before, and kept, so that no answer
	// is about an earlier checkpoint than the one that was kept last.
	mu sync.Mutex
}

// New returns a witness.
func New(o Options) (*Witness, error) {
	for _, k := range o.Logs {
		if k.Cosign {
			return nil, &stele.Error{Op: "witness", Kind: stele.Invalid, Err: stele.Messagef("log.witness-of-witness", `the key "{key}" is that of a witness, and not of a log; a log shows its key at the path key below its URL`, k)}
		}
	}
	return &Witness{o: o}, nil
}

// Path is where a witness takes checkpoints.
const Path = "/add-checkpoint"

const sizeType = "text/x.tlog.size"

// answer is what a request is answered with.
type answer struct {
	status    int
	mediaType string
	body      string
}

func plain(status int, text string) answer {
	return answer{status, "text/plain; charset=utf-8", text + "\n"}
}

// known answers that another size was co-signed last.
func known(size uint64) answer {
	return answer{http.StatusConflict, sizeType, strconv.FormatUint(size, 10) + "\n"}
}

// ServeHTTP answers a request.
func (w *Witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	a := w.serve(rw, r)
	head := rw.Header()
	head.Set("Content-Type", a.mediaType)
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	rw.WriteHeader(a.status)
	_, _ = io.WriteString(rw, a.body) // if this fails the client is gone
}

func (w *Witness) serve(rw http.ResponseWriter, r *http.Request) answer {
	switch {
	case r.URL.Path != Path:
		return plain(http.StatusNotFound, "a witness is here; checkpoints are sent to "+Path)
	case r.Method != http.MethodPost:
		rw.Header().Set("Allow", http.MethodPost)
		return plain(http.StatusMethodNotAllowed, "checkpoints are sent by POST")
	}
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxRequest))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return plain(http.StatusRequestEntityTooLarge, "the request is too long")
	} else if err != nil {
		return plain(http.StatusBadRequest, "the request ended early")
	}
	q, err := parseRequest(body)
	if err != nil {
		return plain(http.StatusBadRequest, stele.Reason(err).Error())
	}
	return w.add(q)
}

// log returns the name of the log that an origin belongs to, its keys, and the era.
func (w *Witness) log(origin string) (name string, keys []transparency.PublicKey, era transparency.EraID) {
	for _, k := range w.o.Logs {
		n, ok := transparency.EraOf(origin, k.Name)
		switch {
		case !ok || len(k.Name) < len(name):
		case k.Name == name:
			keys = append(keys, k)
		default:
			name, keys, era = k.Name, []transparency.PublicKey{k}, n
		}
	}
	return name, keys, era
}

// add judges a request, in the order of tlog-witness.
func (w *Witness) add(q *request) answer {
	name, keys, era := w.log(q.checkpoint.Origin)
	if name == "" {
		return plain(http.StatusNotFound, "this witness does not know the log")
	}
	if _, _, err := transparency.OpenCheckpoint(q.note, keys); err != nil {
		return plain(http.StatusForbidden, stele.Reason(err).Error())
	}
	if q.old > q.checkpoint.Size {
		return plain(http.StatusBadRequest, "the old size is larger than that of the checkpoint")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before, seen := w.o.File.Seen(name)
	former, _ := transparency.EraOf(before.Origin, name) // the first one, if nothing was seen
	switch {
	case seen && era.Compare(former) < 0:
		return plain(http.StatusNotFound, "the log has begun a later era, and the checkpoint is of an earlier one")
	case seen && era != former:
		w.o.Log.Warn("a log goes on in a new era: its registry was restored from a backup", "log", name, "origin", q.checkpoint.Origin, "size before", before.Size, "size now", q.checkpoint.Size)
		seen, before = false, Seen{}
	}
	if a, ok := w.judge(q, before, seen); !ok {
		return a
	}
	at := w.o.Now().UTC()
	line, err := w.o.Key.Cosign(q.text, at)
	if err == nil && (!seen || before.Size != q.checkpoint.Size) {
		err = w.o.File.keep(name, Seen{Origin: q.checkpoint.Origin, Size: q.checkpoint.Size, Root: q.checkpoint.Root, At: at, Note: string(q.note)})
	}
	if err != nil {
		w.o.Log.Error("a checkpoint can't be kept, and is not co-signed", "log", name, "error", err.Error())
		return plain(http.StatusServiceUnavailable, "the witness can't keep the checkpoint; try again later")
	}
	return answer{http.StatusOK, "text/plain; charset=utf-8", line}
}

// judge compares a checkpoint with the one that was co-signed last, if there is one.
func (w *Witness) judge(q *request, before Seen, seen bool) (a answer, ok bool) {
	c := q.checkpoint
	switch {
	case q.old != before.Size:
		return known(before.Size), false
	case seen && c.Size == before.Size && c.Root != before.Root:
		w.report("a log has shown two roots of one size", q, before)
		return known(before.Size), false
	case c.Size == 0 && c.Root != emptyRoot():
		return plain(http.StatusUnprocessableEntity, "the root is not that of a log without leaves"), false
	case q.old == 0 || q.old == c.Size:
		if len(q.proof) > 0 {
			return plain(http.StatusUnprocessableEntity, "the proof has hashes, and needs none"), false
		}
		return a, true
	}
	if err := tlog.CheckTree(q.proof, int64(c.Size), c.Root, int64(before.Size), before.Root); err != nil {
		w.report("a log has not shown that it grew from what was co-signed", q, before)
		return plain(http.StatusUnprocessableEntity, "the proof does not show that the log grew from what was co-signed"), false
	}
	return a, true
}

// report logs what may be proof of misbehaviour: both checkpoints are signed by the log.
func (w *Witness) report(what string, q *request, before Seen) {
	w.o.Log.Error(what, "origin", q.checkpoint.Origin, "co-signed", before.Note, "refused", string(q.note))
}

// emptyRoot returns the hash of a tree without leaves (RFC 6962, section 2.1).
func emptyRoot() tlog.Hash {
	root, _ := tlog.TreeHash(0, nil) // it reads no hash
	return root
}

// request is the body of an add-checkpoint request.
type request struct {
	old        uint64
	proof      tlog.TreeProof
	note       []byte
	text       string                   // of the note: what is co-signed, with lines that extend the checkpoint
	checkpoint *transparency.Checkpoint // its signatures are not checked yet
}

const (
	maxProofLines = 63
	maxNote       = 64 << 10
	maxRequest    = 100 + maxProofLines*50 + maxNote
)

func badRequest(why string) error {
	return &stele.Error{Op: "read request", Kind: stele.Invalid, Err: stele.Messagef("log.add-checkpoint-malformed", "this is not an add-checkpoint request: {reason}", why)}
}

// parseRequest reads the body of an add-checkpoint request.
func parseRequest(body []byte) (*request, error) {
	head, note, ok := strings.Cut(string(body), "\n\n")
	if !ok {
		return nil, badRequest("it has no empty line before a checkpoint")
	}
	lines := strings.Split(head, "\n")
	digits, ok := strings.CutPrefix(lines[0], "old ")
	old, err := parseSize(digits)
	if !ok || err != nil {
		return nil, badRequest("its first line is not an old size")
	}
	q := &request{old: old, note: []byte(note)}
	if len(lines)-1 > maxProofLines {
		return nil, badRequest("its proof is too long")
	}
	for _, line := range lines[1:] {
		h, err := tlog.ParseHash(line)
		if err != nil || h.String() != line {
			return nil, badRequest("a line of the proof is not a hash in base64")
		}
		q.proof = append(q.proof, h)
	}
	text, signatures, ok := strings.Cut(note, "\n\n") // no line of a checkpoint is empty (tlog-checkpoint)
	if !ok || strings.Contains(signatures, "\n\n") {
		return nil, badRequest("the checkpoint has no signature, or an empty line")
	}
	q.text = text + "\n"
	if q.checkpoint, err = transparency.ParseCheckpoint(q.text); err != nil {
		return nil, badRequest("the checkpoint is not one")
	}
	return q, nil
}

// parseSize reads a size: decimal digits without zeros before them.
func parseSize(digits string) (uint64, error) {
	n, err := strconv.ParseUint(digits, 10, 62)
	if err != nil || strconv.FormatUint(n, 10) != digits {
		return 0, badRequest("a size is not a decimal number")
	}
	return n, nil
}
