package hdld

import (
	"context"
	"iter"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/wire/hdl"
)

// dispatch does what a request asks for.
func (s *Server) dispatch(ctx context.Context, q *call) error {
	switch q.operation {
	case hdl.Resolve:
		return s.resolve(ctx, q)
	case hdl.GetSiteInfo:
		return s.reply(ctx, q, hdl.Success, s.o.Site().Octets, replyOptions{})
	case hdl.CreateHandle, hdl.AddValue, hdl.ModifyValue:
		return s.write(ctx, q)
	case hdl.DeleteHandle:
		handle, err := q.handle()
		if err != nil {
			return err
		}
		return s.administrate(ctx, q, &change{s: s, c: &handles.Change{Operation: q.operation, Handle: handle}})
	case hdl.RemoveValue:
		var body hdl.RemoveRequest
		if err := body.Decode(q.m.Body); err != nil {
			return err
		}
		if len(body.Indexes) > hdl.MaxValues {
			return refuse(hdl.ProtocolError, "Remove fewer values at once")
		}
		return s.administrate(ctx, q, &change{s: s, c: &handles.Change{Operation: q.operation, Handle: string(body.Handle), Indexes: body.Indexes}})
	case hdl.ListHandles, hdl.ListDerived, hdl.ListPrefixes, hdl.HomePrefix, hdl.UnhomePrefix:
		handle, err := q.handle()
		if err != nil {
			return err
		}
		return s.administrate(ctx, q, &question{s, &handles.Prefix{Operation: q.operation, Handle: handle}})
	case hdl.AnswerChallenge:
		return s.answered(ctx, q)
	case hdl.VerifyAnswer:
		return s.verify(ctx, q)
	case hdl.SetUpSession:
		return s.setUp(ctx, q)
	case hdl.EndSession:
		if q.session == nil {
			return refuse(hdl.SessionExpired, "Can not get session info.")
		}
		s.sessions.end(q.session)
		return s.reply(ctx, q, hdl.Success, nil, replyOptions{})
	case hdl.NextTransaction:
		return refuse(hdl.Unsupported, "Next txn id no longer supported; upgrade required")
	}
	if q.via == viaUDP && q.operation == hdl.BackUp {
		return errNotAdmin
	}
	switch q.operation {
	case hdl.ExchangeKey, hdl.GetTransactions, hdl.DumpHandles, hdl.BackUp:
		return refuse(hdl.Unsupported, "This server does not do that; see 'stele backup' and 'stele export'")
	}
	return errUnknown
}

// Requests that are answered as octets which are not a message, as the reference does.
var (
	errNotAdmin = &hdl.Error{Response: hdl.ProtocolError, Code: "hdl.not-admin", Text: "Received admin request on non-admin interface"}
	errUnknown  = &hdl.Error{Response: hdl.ServerError, Code: "hdl.operation-unknown", Text: "Server error processing request, see server logs"}
)

// handle reads a body that is a handle.
func (q *call) handle() (string, error) {
	var body hdl.HandleBody
	if err := body.Decode(q.m.Body); err != nil {
		return "", err
	}
	return string(body.Handle), nil
}

// resolve answers with the values of a handle. Those that are not for the public need a proof, unless the
// client does not want them.
func (s *Server) resolve(ctx context.Context, q *call) error {
	var body hdl.ResolveRequest
	if err := body.Decode(q.m.Body); err != nil {
		return err
	}
	if len(body.Indexes) > hdl.MaxValues || len(body.Types) > hdl.MaxValues {
		return refuse(hdl.ProtocolError, "Ask for fewer values at once")
	}
	asked := handles.Asked{Handle: string(body.Handle), PublicOnly: q.m.Header.Flags&hdl.PublicOnly != 0, NoReferral: q.m.Header.Flags&hdl.DoNotRefer != 0}
	asked.Wanted.Indexes = body.Indexes
	for _, t := range body.Types {
		asked.Wanted.Types = append(asked.Wanted.Types, string(t))
	}
	found, err := s.o.Handles.Resolve(ctx, asked)
	if err != nil {
		return err
	}
	if found.Restricted {
		return s.administrate(ctx, q, &reading{s, asked, found.ID, len(handles.Readable(found.Values)) > 0})
	}
	answer, values := valuesBody(asked.Handle, found.Values)
	s.keep(q, found, values)
	return s.reply(ctx, q, hdl.Success, answer, replyOptions{})
}

// valuesBody returns the body of an answer with values, and the part of it that follows the handle.
func valuesBody(handle string, list []stele.HandleValue) (body, values []byte) {
	body = hdl.AppendHandle(nil, handle)
	begin := len(body)
	body = hdl.AppendValues(body, handles.WireValues(list))
	return body, body[begin:]
}

// reading is the resolution of a handle whose values are not all for the public. While it waits for a proof it has no values, which would
// take more memory than the request.
type reading struct {
	s        *Server
	asked    handles.Asked
	id       stele.ID
	readable bool // administrators may read one of the values
}

func (r *reading) begin(context.Context) error { return nil }

func (r *reading) claim(ctx context.Context, who handles.Identity) error {
	return r.authorise(ctx, who)
}

func (r *reading) authorise(ctx context.Context, who handles.Identity) error {
	_, err := r.s.o.Handles.MayRead(ctx, who, r.id)
	if err == nil && !r.readable {
		err = refuse(hdl.ValuesNotFound, "")
	}
	return err
}

func (r *reading) run(ctx context.Context, q *call, who handles.Identity) error {
	found, err := r.s.o.Handles.Resolve(auth.With(ctx, auth.Handle(who.Index, who.Handle)), r.asked) // as it is now
	if err != nil {
		return err
	}
	values, err := r.s.o.Handles.MayReadValues(ctx, who, found)
	if err != nil {
		return err
	}
	body, _ := valuesBody(r.asked.Handle, values)
	return r.s.reply(ctx, q, hdl.Success, body, replyOptions{restricted: true})
}

// write reads a request that writes values.
func (s *Server) write(ctx context.Context, q *call) error {
	var body hdl.ValuesBody
	if err := body.Decode(q.m.Body); err != nil {
		return err
	}
	flags := q.m.Header.Flags
	mint := flags&hdl.MintSuffix != 0
	return s.administrate(ctx, q, &change{s: s, minted: mint, c: &handles.Change{Operation: q.operation, Handle: string(body.Handle),
		Values: handles.ReadValues(body.Values), Overwrite: flags&hdl.Overwrite != 0, Mint: mint}})
}

// change is a change of a handle.
type change struct {
	s      *Server
	c      *handles.Change
	minted bool
}

func (c *change) begin(ctx context.Context) error { return c.s.o.Handles.Begin(ctx, c.c) }
func (c *change) claim(ctx context.Context, who handles.Identity) error {
	return c.c.Claim(ctx, who)
}

func (c *change) authorise(ctx context.Context, who handles.Identity) error {
	return c.c.Authorise(ctx, who)
}

func (c *change) run(ctx context.Context, q *call, who handles.Identity) error {
	if err := c.c.Commit(c.s.witnessed(ctx, q), who); err != nil {
		return err
	}
	var o replyOptions
	if c.c.Replaced {
		o.flags |= hdl.Overwrite
	}
	if c.minted {
		o.flags |= hdl.MintSuffix
	}
	var body []byte
	if c.c.Operation == hdl.CreateHandle {
		body = hdl.AppendHandle(nil, c.c.Handle)
	}
	return c.s.reply(ctx, q, hdl.Success, body, o)
}

// witnessed returns the context of a change, which says to the audit trail how it came in.
func (s *Server) witnessed(ctx context.Context, q *call) context.Context {
	from := auth.Origin{Via: "handle"}
	if s.o.Addresses {
		from.Address = limit.Client(q.from.Addr())
	}
	return auth.WithOrigin(ctx, from)
}

// question is one about a prefix.
type question struct {
	s *Server
	p *handles.Prefix
}

func (p *question) begin(ctx context.Context) error { return p.s.o.Handles.BeginPrefix(ctx, p.p) }
func (p *question) claim(ctx context.Context, who handles.Identity) error {
	return p.authorise(ctx, who)
}

func (p *question) authorise(ctx context.Context, who handles.Identity) error {
	return p.p.Authorise(ctx, who)
}

func (p *question) run(ctx context.Context, q *call, who handles.Identity) error {
	switch p.p.Operation {
	case hdl.ListHandles:
		return p.s.names(ctx, q, p.p.Handles(ctx))
	case hdl.ListDerived:
		return p.s.names(ctx, q, p.p.Derived(ctx))
	case hdl.ListPrefixes:
		return p.s.names(ctx, q, p.p.Homed(ctx))
	case hdl.UnhomePrefix:
		if err := p.p.Unhome(p.s.witnessed(ctx, q), who); err != nil {
			return err
		}
	default:
		if err := p.p.Home(p.s.witnessed(ctx, q), who); err != nil {
			return err
		}
	}
	return p.s.reply(ctx, q, hdl.Success, nil, replyOptions{})
}

// names answers with names, fifty in a message; all but the last have the flag that more follow. A listing
// that fails in its middle ends with an error in the place of more names.
func (s *Server) names(ctx context.Context, q *call, list iter.Seq2[string, error]) error {
	batch := make([][]byte, 0, hdl.NamesInMessage)
	body := func() []byte {
		b := hdl.NamesBody{Names: batch}
		return b.Append(nil, q.version())
	}
	for name, err := range list {
		if err != nil {
			return err
		}
		if len(batch) == hdl.NamesInMessage {
			if err := s.reply(ctx, q, hdl.Success, body(), replyOptions{flags: hdl.Continuous}); err != nil {
				return nil // the client is gone
			}
			q.renew()
			batch = batch[:0]
		}
		batch = append(batch, []byte(name))
	}
	return s.reply(ctx, q, hdl.Success, body(), replyOptions{})
}

// verify says to another server whether a client has answered that server's challenge rightly, with a key or a
// secret that this one knows.
func (s *Server) verify(ctx context.Context, q *call) error {
	var body hdl.VerifyRequest
	if err := body.Decode(q.m.Body); err != nil {
		return err
	}
	claimed, err := s.o.Handles.Identity(body.Identity.Handle, body.Identity.Index)
	if err != nil {
		return refuse(hdl.InvalidHandle, "")
	}
	_, err = s.prove(handles.AtHome(ctx), q, claimed, &handles.Proof{Version: q.version(), Type: hdl.TypeSecretKey, Nonce: body.Nonce, Digest: body.Digest, Answer: body.Answer})
	if err != nil && handles.CodeOf(err) != hdl.NotAuthenticated {
		return err
	}
	valid := hdl.VerifiedBody{Valid: err == nil}
	return s.reply(ctx, q, hdl.Success, valid.Append(nil, q.version()), replyOptions{})
}
