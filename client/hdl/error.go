package hdlclient

import (
	"cmp"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// refuse makes an error of a kind.
func refuse(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: "ask", Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// Failure is a response code that says that a server did not do what it was asked for. It is within the errors of a
// [Client], whose Kind follows from the code.
type Failure struct {
	Code   hdl.ResponseCode
	Text   string // of the server, as it may be shown; may be empty
	Server string
}

// Error says which server answered what.
func (f *Failure) Error() string { return f.message().Error() }

// message returns the failure as people see it.
func (f *Failure) message() *stele.Message {
	code := strconv.FormatUint(uint64(f.Code), 10)
	text := Meaning(f.Code)
	if f.Text != "" {
		text += " (" + f.Text + ")"
	}
	switch {
	case f.Code == hdl.NotResponsible:
		return stele.Messagef("hdlclient.not-responsible", "{server} answers {meaning}, response code {code}; ask another server, or begin at the root of the Handle System", f.Server, text, code)
	case kindOf(f.Code) == stele.Unavailable:
		return stele.Messagef("hdlclient.server-unavailable", "{server} answers {meaning}, response code {code}; try again later", f.Server, text, code)
	}
	return stele.Messagef("hdlclient.refused", "{server} answers {meaning}, response code {code}", f.Server, text, code)
}

// As lets callers find the message, for other languages.
func (f *Failure) As(target any) bool {
	m, ok := target.(**stele.Message)
	if ok {
		*m = f.message()
	}
	return ok
}

// meanings are response codes in words.
var meanings = map[hdl.ResponseCode]string{
	hdl.Success: "success", hdl.ServerError: "that it failed", hdl.ServerBusy: "that it is busy",
	hdl.ProtocolError: "that it does not understand the request", hdl.Unsupported: "that it does not do this",
	hdl.RecursionLimit: "that too many servers were asked", hdl.ServerBackup: "that it makes a backup",
	hdl.HandleNotFound: "that there is no such handle", hdl.HandleExists: "that the handle exists already",
	hdl.InvalidHandle: "that this is not a handle", hdl.ValuesNotFound: "that the handle has no such values",
	hdl.ValueExists: "that there is a value with this index already", hdl.InvalidValue: "that a value is wrong",
	hdl.OldSite: "that the site has changed", hdl.NotResponsible: "that it does not have this prefix",
	hdl.ServiceReferral: "that another service has the handle", hdl.PrefixReferral: "that another service has the prefix",
	hdl.NotAdministrator: "that this identity does not administer the handle", hdl.NotPermitted: "that this is not permitted",
	hdl.Challenged: "that an administrator must prove who they are", hdl.NotAuthenticated: "that the key or the secret is wrong",
	hdl.InvalidCredential: "that the code of the message is wrong", hdl.ChallengeTimeout: "that its challenge has expired",
	hdl.CannotAuthenticate: "that it cannot verify this identity", hdl.SessionExpired: "that the session has ended",
	hdl.SessionFailed: "that it cannot set up a session", hdl.InvalidSessionKey: "that the key of the session is wrong",
	hdl.SetupNotSupported: "that it does not set up sessions in this way", hdl.SetupRepeated: "that the session was set up already",
	hdl.Replayed: "that the request was sent before",
}

// Meaning returns a response code in words, as they follow "the server answers".
func Meaning(code hdl.ResponseCode) string {
	return cmp.Or(meanings[code], "an unknown response code")
}

// kindOf is the one table from response codes to kinds of errors.
func kindOf(code hdl.ResponseCode) stele.Kind {
	switch code {
	case hdl.HandleNotFound, hdl.ValuesNotFound, hdl.NotResponsible:
		return stele.NotFound
	case hdl.HandleExists, hdl.ValueExists, hdl.SetupRepeated:
		return stele.Conflict
	case hdl.ProtocolError, hdl.Unsupported, hdl.InvalidHandle, hdl.InvalidValue, hdl.SetupNotSupported, hdl.InvalidSessionKey:
		return stele.Invalid
	case hdl.NotAdministrator, hdl.NotPermitted:
		return stele.Forbidden
	case hdl.Challenged, hdl.NotAuthenticated, hdl.InvalidCredential, hdl.CannotAuthenticate:
		return stele.Unauthenticated
	}
	return stele.Unavailable
}

// failure returns what a server said as an error.
func (got *reply) failure() error {
	f := &Failure{Code: got.code(), Server: got.from}
	if body, ok := got.body.(*hdl.ErrorBody); ok {
		f.Text = printable(body.Text)
	}
	return &stele.Error{Op: "ask", Kind: kindOf(f.Code), Err: f}
}

// odd is the error for an answer that makes no sense.
func (got *reply) odd() error {
	return refuse(stele.Unavailable, "hdlclient.answer-odd", "{server} gave an answer that does not fit the request", got.from)
}

// maxText is how much of a server's text is shown.
const maxText = 200

// printable returns the text of a server without what a terminal would act on.
func printable(text []byte) string {
	text = text[:min(len(text), maxText)]
	quoted := strconv.QuoteToGraphic(string(text))
	return quoted[1 : len(quoted)-1]
}

// isFailureOf reports whether a response code says something of the server or of the session, and nothing of the handle:
// then another transport or another server may do better, and a server that is not in order may be unable to certify
// what it says.
func isFailureOf(code hdl.ResponseCode) bool {
	switch code {
	case hdl.ServerError, hdl.ServerBusy, hdl.ProtocolError, hdl.ServerBackup, hdl.SessionExpired, hdl.SessionFailed, hdl.Replayed, hdl.ChallengeTimeout:
		return true
	}
	return false
}
