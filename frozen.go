package stele

import "time"

// ErrFrozen is in the chain of the errors with which the server of a frozen archive refuses what changes something, or needs a user: an
// archive shows what another registry had at a time, and nothing of it ever changes.
var ErrFrozen = Messagef("registry.frozen", "nothing can be changed here, and no user can sign in")

// Frozen says that the names are those that a registry had at a time. The registry is named by the origin of its log.
func Frozen(origin string, at time.Time) error {
	return &Error{Op: "serve", Kind: Forbidden, Err: Messagef("registry.frozen-archive", "this is a frozen archive of {origin} as of {time}: {cause}", origin, at.UTC().Format(time.RFC3339), ErrFrozen)}
}
