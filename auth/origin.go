package auth

import "context"

// Origin says how a request came in, for the audit trail. It gives no rights.
type Origin struct {
	Via     string    // one of [Ways]
	System  string    // the user of the operating system, for a command on a folder or a database
	Address string    // the client's address; "" unless the operator wants it to be kept
	Caller  Principal // the caller for whom the server acts on its own behalf; zero: the principal in the context
}

// Ways returns the names of the ways in: the pages of curators, the interfaces over HTTP, the Handle protocol by its own port or over
// HTTP, harvests that the server makes, commands on a folder or a database, the resolver, and what the server does of itself.
func Ways() []string {
	return []string{"desk", "api", "ezid", "handle", "lsid", "harvest", "command", "resolver", "server"}
}

type originKey struct{}

// WithOrigin returns a context with the origin of a request.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns how the request of the context came in.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}
