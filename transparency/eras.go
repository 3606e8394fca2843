package transparency

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// EraID tells eras of a log apart, and which is the later one. Its zero value is the era before the first restore.
type EraID struct {
	Number uint64 // of the generation; 0 if that is the first
	Began  int64  // in seconds of Unix time
}

// Compare returns which of two eras is the later one, as [cmp.Compare] does. A backup can be restored twice, to two empty folders for example: both
// registries have the same number then, and the one that was restored later is the later one.
func (e EraID) Compare(other EraID) int {
	return cmp.Or(cmp.Compare(e.Number, other.Number), cmp.Compare(e.Began, other.Began))
}

// eraTime is how a restore is dated in an origin.
const eraTime = "20060102T150405Z"

// String returns how the origin of the era ends.
func (e EraID) String() string {
	if e == (EraID{}) {
		return ""
	}
	text := "/g" + strconv.FormatUint(e.Number, 10)
	if e.Began == 0 { // in logs of an early program
		return text
	}
	return text + "-" + time.Unix(e.Began, 0).UTC().Format(eraTime)
}

// parseEra reads what String writes.
func parseEra(text string) (e EraID, ok bool) {
	if text == "" {
		return e, true
	}
	rest, ok := strings.CutPrefix(text, "/g")
	if !ok {
		return e, false
	}
	number, began, dated := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || n < 2 {
		return e, false
	}
	e.Number = n
	if dated {
		t, err := time.Parse(eraTime, began)
		if err != nil {
			return e, false
		}
		e.Began = t.Unix()
	}
	return e, e.String() == text
}

// id returns the identifier of an era.
func (e *Era) id() EraID {
	if e.Number < 2 {
		return EraID{}
	}
	return EraID{e.Number, e.Began.Unix()}
}

// eraOrigin returns the origin of a log in an era: after a restore it is another one, which says so. That holds for a log
// that begins after a restore, too: the backup may be from before the log, and the log that was there had other leaves.
func eraOrigin(base string, eras []Era) string {
	if len(eras) == 0 {
		return base
	}
	return base + eras[len(eras)-1].id().String()
}

// EraOf reports whether an origin is that of a log, or of one of its later eras, and of which.
func EraOf(origin, log string) (e EraID, ok bool) {
	rest, ok := strings.CutPrefix(origin, log)
	if !ok {
		return e, false
	}
	return parseEra(rest)
}

// isEra reports whether an origin is that of a log, or of one of its later eras.
func isEra(origin, log string) bool {
	_, ok := EraOf(origin, log)
	return ok
}

// BaseOrigin returns the name of a log, given the origin of one of its eras.
func BaseOrigin(origin string) string { return strings.TrimSuffix(origin, originEnd(origin)) }

// originEnd returns how an origin ends if it is that of a later era; "" otherwise.
func originEnd(origin string) string {
	if i := strings.LastIndex(origin, "/"); i >= 0 {
		if _, ok := parseEra(origin[i:]); ok {
			return origin[i:]
		}
	}
	return ""
}

// endsAsEra reports whether an origin ends as that of a later era does, or may be taken for it.
func endsAsEra(origin string) bool {
	rest, ok := strings.CutPrefix(origin[strings.LastIndex(origin, "/")+1:], "g")
	return ok && rest != "" && rest[0] >= '0' && rest[0] <= '9'
}
