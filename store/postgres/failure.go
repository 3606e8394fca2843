package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// Codes of errors that say more than that something went wrong (PostgreSQL's
// documentation, appendix A).
const (
	codeSerialization  = "40001"
	codeDeadlock       = "40P01"
	codeUnique         = "23505"
	codeSyntax         = "42601"
	codeUnsupported    = "0A000"
	codeNoColumn       = "42703"
	codeLocked         = "55P03" // a lock was not granted in time
	codeReadOnly       = "25006" // the server is a standby by now
	codeTooMany        = "53300" // connections
	codeWrongPassword  = "28P01"
	codeWrongUser      = "28000"
	codeNoDatabase     = "3D000"
	codeNoSchema       = "3F000"
	codeNoTable        = "42P01"
	codeForbidden      = "42501"
	codeDuplicateTable = "42P07"
	codeCanceled       = "57014"
)

// codeOf returns the code of an error that the server sent; "" for other errors.
func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// errAgain says that what was read has changed before it could be written.
var errAgain = stele.Messagef("commit.other-writer", "another writer wrote at the same time")

// errQueue says that a request was not taken from the queue in time.
var errQueue = stele.Messagef("store.others-waiting", "others are waiting for it too")

// isAgain reports whether the same transaction may succeed when it is tried again at
// once.
func isAgain(err error) bool {
	switch codeOf(err) {
	case codeSerialization, codeDeadlock, codeUnique, codeLocked:
		return true
	}
	return errors.Is(err, errAgain)
}

// isAway reports whether the database could not be reached, or ended the connection: it
// may be back soon, or another server in its place.
func isAway(err error) bool {
	code := codeOf(err)
	if code == "" {
		_, own := errors.AsType[*stele.Error](err)
		return err != nil && !own // of the network, or of the connection
	}
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P") || code == codeReadOnly || code == codeTooMany
}

// away is the error of a caller that got no answer of the database in time.
func (s *Store) away(op string, cause error) error {
	return refuse(op, stele.ID{}, stele.Unavailable, "store.database-too-slow", "the database did not do it within {wait}, and nothing was written ({cause}); try again", s.o.Wait, plain(cause))
}

// sick is the error for an answer of the database that an immediate retry does not
// change.
func sick(op string, id stele.ID, err error) error {
	if _, ok := errors.AsType[*stele.Error](err); ok {
		return err
	}
	code := codeOf(err)
	switch {
	case code == codeNoTable || code == codeNoSchema:
		return refuse(op, id, stele.Unavailable, "store.tables-not-found", `the database has no tables of a registry ({cause}); run "stele store migrate"`, plain(err))
	case code == codeForbidden:
		return refuse(op, id, stele.Unavailable, "store.database-rights-missing", "the database's user may not do that ({cause}); grant it the rights", plain(err))
	case strings.HasPrefix(code, "53") || strings.HasPrefix(code, "58") || code == codeCanceled || code == "" || isAway(err) || isAgain(err):
		return refuse(op, id, stele.Unavailable, "store.database-unavailable", "the database can't do it at present ({cause}); try again later", plain(err))
	default:
		return refuse(op, id, stele.Internal, "store.database-refuses", "the database refuses what it is asked for ({cause}); report this", plain(err))
	}
}

// plain makes one line of an error. pgx lists the hosts that it tried on lines of their
// own, each several times if it tried with TLS and without.
func plain(err error) error {
	if err == nil || !strings.Contains(err.Error(), "\n") {
		return err
	}
	var seen []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(seen, line) {
			seen = append(seen, line)
		}
	}
	return &oneLine{strings.Join(seen, "; "), err}
}

// oneLine is an error with another text.
type oneLine struct {
	text string
	err  error
}

func (e *oneLine) Error() string { return e.text }
func (e *oneLine) Unwrap() error { return e.err }

// refuse makes an error.
func refuse(op string, id stele.ID, kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: op, ID: id, Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// closed is the error of a call after Close.
func closed(op string) error {
	return refusal.Closed(op)
}

// ended returns the error of a context that ended, or else err.
func ended(ctx context.Context, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	return err
}
