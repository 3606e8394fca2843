// Package handles is what the registry is to the Handle System: which values a record has there,
// who administers it, and what the operations of the protocol change. The native protocol
// (serve/hdld) and the REST interface (serve/httpd) only decode, call and encode.
//
// A handle is a record like any other one. Its administrators are those whom its values of type
// HS_ADMIN name, directly or by a list (HS_VLIST); what they may do is judged here, and what they
// write passes the registrar with the rights of an editor of that one record, so that the
// rules of its namespace hold for them too.
//
// Nothing is deleted: DELETE withdraws a record, which then is not found by the protocol, and a
// client that creates it again brings it back as a new version.
package handles

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/wire/hdl"
)

// Options are what a [Service] works with.
type Options struct {
	Registrar *registrar.Registrar
	Resolver  *resolver.Resolver
	Schemes   *stele.Schemes
	Now       func() time.Time
	Log       *slog.Logger

	// Administrators may do everything with every handle, and home prefixes. They are those of the
	// server's configuration.
	Administrators []Identity

	// User returns the user whose credential an identity is; ok is false if it stands alone. May be nil.
	User func(ctx context.Context, who Identity) (p auth.Principal, ok bool, err error)

	// Elsewhere asks other servers about identities that are not in this registry. If it is nil they prove nothing.
	Elsewhere Elsewhere

	// UUID returns a new UUID, for names that are minted.
	UUID func() (string, error)
}

// Service answers for the handles of a registry. It is used by many goroutines at once.
type Service struct {
	o      Options
	public *limit.Rate // changes of handles by everybody, for each handle
}

// New returns a service.
func New(o Options) *Service {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Service{o: o, public: limit.NewRate(publicRate, publicBurst)}
}

// Identity is a value of a handle with a key or a secret, by which a client is known in the Handle
// System. Index 0 stands for any value of the handle.
type Identity struct {
	Handle string // canonical, without mark: in upper case
	Index  uint32
}

// String returns the identity as the Handle System writes it: 300:0.NA/20.500.99999.
func (i Identity) String() string {
	return strconv.FormatUint(uint64(i.Index), 10) + ":" + i.Handle
}

// ParseIdentity reads an identity. Without an index it stands for any value of the handle.
func (s *Service) ParseIdentity(text string) (Identity, error) {
	index, handle, ok := strings.Cut(text, ":")
	n, err := strconv.ParseUint(index, 10, 32)
	if !ok || err != nil {
		n, handle = 0, text
	}
	return s.Identity(handle, uint32(n))
}

// Identity returns the identity of a value of a handle, in any spelling.
func (s *Service) Identity(handle string, index uint32) (Identity, error) {
	id, err := s.Parse(handle)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Handle: Bare(id), Index: index}, nil
}

// Refusal says that an operation was not done, and why. It is the one error of this package.
type Refusal struct {
	Code hdl.ResponseCode
	Text string // for people; may be empty
	Err  error  // what went wrong, for the log; may be nil
}

// Error returns the text, or the number of the code.
func (r *Refusal) Error() string {
	return cmp.Or(r.Text, "response code "+strconv.FormatUint(uint64(r.Code), 10))
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(code hdl.ResponseCode, text string) *Refusal { return &Refusal{Code: code, Text: text} }

// refusalOf is the one table from kinds of errors to response codes. Code 2 makes clients repeat the
// request by other transports, so it is for our own failures only.
func refusalOf(err error) *Refusal {
	if errors.Is(err, stele.ErrSealed) { // a conflict with no handle; its text is the operator's
		return &Refusal{Code: hdl.ServerBusy, Err: err}
	}
	code := hdl.ServerError
	switch stele.KindOf(err) {
	case stele.Invalid:
		code = hdl.InvalidValue
	case stele.NotFound, stele.Gone:
		return &Refusal{Code: hdl.HandleNotFound, Err: err}
	case stele.Conflict:
		code = hdl.HandleExists
	case stele.Forbidden, stele.Exhausted: // a quota
		code = hdl.NotPermitted
	case stele.Unauthenticated:
		code = hdl.NotAuthenticated
	case stele.Unavailable:
		return &Refusal{Code: hdl.ServerBusy, Err: err}
	default:
		return &Refusal{Code: code, Text: "Internal Error", Err: err}
	}
	return &Refusal{Code: code, Text: stele.Reason(err).Error(), Err: err}
}

// Parse reads a handle as clients of the protocol send it. A name without a slash is that of a
// prefix: 0.NA/name (section 7).
func (s *Service) Parse(text string) (stele.ID, error) {
	if len(text) > 0 && !strings.Contains(text, "/") {
		text = authorityMark + text
	}
	return s.o.Schemes.Lookup(destination.HandleScheme).Parse(destination.HandleMark + text)
}

// authorityMark begins the names of records that describe prefixes.
const authorityMark = "0.NA/"

// Bare returns a handle in canonical form without its mark.
func Bare(id stele.ID) string { return strings.TrimPrefix(id.String(), destination.HandleMark) }

// authorityOf returns the record that describes the prefix of a handle.
func (s *Service) authorityOf(id stele.ID) (stele.ID, error) {
	prefix, _, _ := strings.Cut(Bare(id), "/")
	return s.Parse(authorityMark + prefix)
}

// describes returns the prefix that the record with this name describes.
func describes(id stele.ID) (prefix string, ok bool) {
	return strings.CutPrefix(Bare(id), authorityMark)
}

// Namespace returns the namespace that a handle belongs to, if this server answers for it; nil
// otherwise. The record 0.NA/P belongs to the namespace of P.
func (s *Service) Namespace(ctx context.Context, id stele.ID) (*stele.Namespace, error) {
	ns, err := s.o.Resolver.Namespace(ctx, id)
	if err != nil || ns == nil || ns.Prefix == "" || ns.AnsweredAt() != "" || ns.Handles.Off {
		return nil, err
	}
	return ns, nil
}

// responsible refuses a handle for whose prefix this server does not answer.
func (s *Service) responsible(ctx context.Context, id stele.ID) error {
	ns, err := s.Namespace(ctx, id)
	if err != nil {
		return refusalOf(err)
	}
	if ns == nil {
		return refuse(hdl.NotResponsible, "That prefix doesn't live here")
	}
	return nil
}

// parse reads a handle that a client sent, and makes sure that this server answers for it.
func (s *Service) parse(ctx context.Context, handle string) (stele.ID, error) {
	id, err := s.Parse(handle)
	if err != nil {
		return stele.ID{}, &Refusal{Code: hdl.InvalidHandle, Text: stele.Reason(err).Error(), Err: err}
	}
	return id, s.responsible(ctx, id)
}

// Check makes sure that a text is a handle for which this server answers.
func (s *Service) Check(ctx context.Context, handle string) error {
	_, err := s.parse(ctx, handle)
	return err
}

// server returns a context in which the service itself reads: it judges rights by the values of records.
func server(ctx context.Context) context.Context { return auth.With(ctx, auth.Local()) }

// record returns a record in whatever state it is; nil if there is none.
func (s *Service) record(ctx context.Context, id stele.ID) (*stele.Record, error) {
	rec, err := s.o.Registrar.Get(server(ctx), id)
	switch {
	case stele.KindOf(err) == stele.NotFound:
		return nil, nil
	case err != nil:
		return nil, refusalOf(err)
	}
	return rec, nil
}

// present returns a record that the protocol finds; nil if there is none.
func (s *Service) present(ctx context.Context, id stele.ID) (*stele.Record, error) {
	rec, err := s.record(ctx, id)
	if rec == nil || rec.State != stele.Active {
		return nil, err
	}
	return rec, nil
}

// CodeOf returns the response code of an error of this package.
func CodeOf(err error) hdl.ResponseCode {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Code
	}
	return hdl.ServerError
}
