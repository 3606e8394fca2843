package deposit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
)

// Form is the number of the form of lists that this package writes and reads.
const Form = 1

// List is a deposit: a file of lines in JSON, the first of which is [Head], and the others are objects. The content of the objects, one
// after the other, is that of the files of the bundle, one after the other.
type List struct {
	Head
	Objects []Object

	Name string // of the list at its place
}

// Head is the first line of a list.
type Head struct {
	Form     int         `json:"deposit"`
	At       time.Time   `json:"at"` // when the deposit was begun
	Bundle   bundle.Head `json:"bundle"`
	Manifest string      `json:"manifest"` // SHA-256 of the manifest of the bundle, which names it
	Records  uint64      `json:"records"`
	Versions uint64      `json:"versions"`
	Bytes    int64       `json:"bytes"`   // of the bundle as one file that is not compressed
	Objects  int         `json:"objects"` // lines that follow
}

// Object is another line of a list: some bytes of the files, which are kept at the place under the name of their SHA-256.
type Object struct {
	Sum    string `json:"object"`
	Gzip   bool   `json:"gzip,omitempty"` // it is kept compressed
	Size   int64  `json:"size"`           // of the content
	Stored int64  `json:"stored"`         // bytes at the place
	Files  []File `json:"files,omitempty"`

	about string // a file with content of it, for errors
}

// File is a file of the bundle whose content begins in an object. If it is longer than the rest of the object, it goes on in the next.
type File struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// Limits on what a place may answer.
const (
	maxObject  = 32 << 20  // bytes of an object: more than a file of records has
	maxList    = 256 << 20 // bytes of a list
	maxObjects = 1 << 20   // of a list
	maxStored  = 1 << 22   // objects at a place
	maxLists   = 1 << 16   // at a place
	maxNames   = 4096      // files that begin in an object
)

// Folders at a place.
const (
	objectsFolder = "objects"
	listsFolder   = "deposits"
)

// name returns under which name the object is kept.
func (o *Object) name() string {
	name := objectsFolder + "/" + o.Sum[:2] + "/" + o.Sum
	if o.Gzip {
		name += ".gz"
	}
	return name
}

const listTime = "20060102T150405Z"

// encode returns the text of the list, and gives the list its name: the time of the deposit, the number of the last change in it, and
// the beginning of the digest of the text, so that a changed list is noticed.
func (l *List) encode() ([]byte, error) {
	l.Head.Objects = len(l.Objects)
	text, err := appendLine(nil, &l.Head)
	for i := 0; i < len(l.Objects) && err == nil; i++ {
		text, err = appendLine(text, &l.Objects[i])
	}
	if err != nil {
		return nil, err
	}
	if len(text) > maxList || len(l.Objects) > maxObjects {
		return nil, failf(stele.Exhausted, "deposit.list-would-be-too-long", "the list of the deposit would have {objects} objects, which is more than this program keeps; make deposits of several prefixes, at several places", len(l.Objects))
	}
	l.Name = fmt.Sprintf("%s/%s-%d-%s.jsonl", listsFolder, l.At.UTC().Format(listTime), l.Bundle.Changes, sumOf(text)[:16])
	return text, nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func appendLine(b []byte, v any) ([]byte, error) {
	var buf bytes.Buffer
	w := json.NewEncoder(&buf)
	w.SetEscapeHTML(false)
	if err := w.Encode(v); err != nil {
		return nil, &stele.Error{Op: op, Kind: stele.Internal, Err: err}
	}
	return append(b, buf.Bytes()...), nil
}

// listed is what the name of a list says.
type listed struct {
	name   string
	at     time.Time
	change uint64
	sum    string
}

// parseListName reads the name of a list; false if it is not one.
func parseListName(name string) (l listed, ok bool) {
	text, ok := strings.CutPrefix(name, listsFolder+"/")
	text, ok2 := strings.CutSuffix(text, ".jsonl")
	parts := strings.Split(text, "-")
	if !ok || !ok2 || len(parts) != 3 || len(parts[2]) != 16 || !isHex(parts[2]) {
		return listed{}, false
	}
	at, err := time.Parse(listTime, parts[0])
	change, err2 := strconv.ParseUint(parts[1], 10, 64)
	if err != nil || err2 != nil || strconv.FormatUint(change, 10) != parts[1] {
		return listed{}, false
	}
	return listed{name, at, change, parts[2]}, true
}

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }

// parseList reads what encode writes, and nothing else. The text is any: all of it is checked, and memory is needed for what it has.
func parseList(name string, text []byte) (*List, error) {
	wrong := func(line int, cause error) error {
		return failf(stele.Invalid, "deposit.list-line-wrong", "line {line} of {list}: {cause}", line, name, cause)
	}
	said, ok := parseListName(name)
	if !ok {
		return nil, failf(stele.Invalid, "deposit.list-name-wrong", "{list} is not the name of a deposit", name)
	}
	if sumOf(text)[:16] != said.sum {
		return nil, failf(stele.Invalid, "deposit.list-changed", "{list} was changed: its SHA-256 does not begin as its name says", name)
	}
	l := &List{Name: name}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if err := parseLine(first, &l.Head); err != nil {
		return nil, wrong(1, err)
	}
	switch {
	case l.Form != Form:
		return nil, wrong(1, stele.Messagef("deposit.form-unknown", "the form of the deposit is {form}; this program reads {known}", l.Form, Form))
	case l.Bundle.Changes != said.change || !l.At.Truncate(time.Second).Equal(said.at):
		return nil, wrong(1, stele.Messagef("deposit.list-of-other", "this is a deposit of another time, or of another change, than the name of the list says"))
	case !isSum(l.Manifest):
		return nil, wrong(1, errSum)
	case l.Head.Objects < 1 || l.Head.Objects > maxObjects || bytes.Count(rest, []byte("\n")) != l.Head.Objects:
		return nil, wrong(1, stele.Messagef("deposit.list-count", "it says that {count} objects follow, and a list has from 1 to {most}, one on each line", l.Head.Objects, maxObjects))
	}
	l.Objects = make([]Object, 0, min(l.Head.Objects, 1<<16))
	var left int64 // of the last file that has begun
	about := ""
	for n := 2; len(rest) > 0; n++ {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		var o Object
		err := parseLine(line, &o)
		if err == nil {
			left, err = o.check(left)
		}
		if err != nil {
			return nil, wrong(n, err)
		}
		if o.about = about; len(o.Files) > 0 {
			o.about, about = o.Files[0].Name, o.Files[len(o.Files)-1].Name
		}
		l.Objects = append(l.Objects, o)
	}
	if left != 0 || len(l.Objects) != l.Head.Objects {
		return nil, wrong(l.Head.Objects+1, stele.Messagef("deposit.list-ends-early", "the list ends before its last file does"))
	}
	return l, nil
}

var (
	errSum     = stele.Messagef("deposit.not-a-digest", "a digest is not SHA-256 in hexadecimal digits")
	errNotLine = stele.Messagef("deposit.not-a-line", "this is not JSON as a list has it: it was changed, or another program made it")
	errSizes   = stele.Messagef("deposit.sizes-wrong", "the sizes of files and objects do not fit together")
)

func isSum(text string) bool { return len(text) == 2*sha256.Size && isHex(text) }

// parseLine reads what appendLine writes, and nothing else. v points at the zero value.
func parseLine(line []byte, v any) error {
	if json.Unmarshal(line, v) != nil {
		return errNotLine
	}
	again, err := appendLine(make([]byte, 0, len(line)+1), v)
	if err != nil || !bytes.Equal(again[:len(again)-1], line) {
		return errNotLine
	}
	return nil
}

// check judges an object, given how many bytes of the last file are still to come. It returns how many are after it.
func (o *Object) check(left int64) (int64, error) {
	switch {
	case !isSum(o.Sum):
		return 0, errSum
	case o.Size < 0 || o.Size > maxObject || o.Stored < 0 || o.Stored > 2*maxObject || !o.Gzip && o.Stored != o.Size:
		return 0, stele.Messagef("deposit.object-size-wrong", "an object has at most {most} bytes, and as many at the place if it is not compressed", maxObject)
	case o.Size == 0 && len(o.Files) == 0 || len(o.Files) > maxNames:
		return 0, errSizes
	}
	rest := o.Size
	if len(o.Files) == 0 || left > 0 {
		n := min(left, rest)
		left, rest = left-n, rest-n
	}
	for _, f := range o.Files {
		if left > 0 || f.Size < 0 || f.Name == "" {
			return 0, errSizes
		}
		n := min(f.Size, rest)
		left, rest = f.Size-n, rest-n
	}
	if rest != 0 {
		return 0, errSizes
	}
	return left, nil
}
