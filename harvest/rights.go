package harvest

import (
	"context"
	"errors"
	"iter"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
)

// Ruled is a registry that says which role a caller has.
type Ruled interface {
	Registry
	RoleIn(ctx context.Context, key stele.NamespaceKey) (stele.Role, error)
}

// asUser is a registry as the user of a scheduled harvest sees it. The rights of the user are looked up for each call: a user who is
// disabled, or who loses the role in the namespace while a harvest is under way, writes nothing after that, and the bookmark stays.
type asUser struct {
	Ruled
	users Users
	user  string
	into  stele.NamespaceKey
}

// rightsError says that the user of a scheduled harvest has not the rights for it.
type rightsError struct{ err error }

func (e *rightsError) Error() string { return e.err.Error() }
func (e *rightsError) Unwrap() error { return e.err }

// rights returns a context with the rights that the user has now.
func (a *asUser) rights(ctx context.Context) (context.Context, error) {
	who := auth.Local()
	if a.user != who.Name { // no user has this name
		var err error
		who, err = a.users.Principal(ctx, a.user)
		switch code, _ := stele.CodeOf(err); {
		case errors.Is(err, stele.Unauthenticated) && code == "token.user-disabled":
			return ctx, &rightsError{refuse(stele.Forbidden, "harvest.user-disabled", `the user "{user}", whose rights the harvest has, is disabled`, a.user)}
		case errors.Is(err, stele.Unauthenticated):
			return ctx, &rightsError{refuse(stele.Forbidden, "harvest.user-missing", `there is not a user "{user}", whose rights the harvest has`, a.user)}
		case err != nil:
			return ctx, err
		}
	}
	ctx = auth.WithOrigin(auth.With(ctx, who), auth.Origin{Via: "harvest"})
	role, err := a.RoleIn(ctx, a.into)
	if err != nil {
		return ctx, err
	}
	if !role.Includes(stele.RoleOwner) {
		return ctx, &rightsError{refuse(stele.Forbidden, "harvest.user-not-owner", `the user "{user}", whose rights the harvest has, is not an owner of {namespace} any more`, a.user, a.into)}
	}
	return ctx, nil
}

func (a *asUser) Bookmark(ctx context.Context, name string) ([]byte, error) {
	ctx, err := a.rights(ctx)
	if err != nil {
		return nil, err
	}
	return a.Ruled.Bookmark(ctx, name)
}

func (a *asUser) BeginImport(ctx context.Context, label string) (uint64, error) {
	ctx, err := a.rights(ctx)
	if err != nil {
		return 0, err
	}
	return a.Ruled.BeginImport(ctx, label)
}

func (a *asUser) NoteImport(ctx context.Context, number uint64, counts registrar.ImportCounts) error {
	ctx, err := a.rights(ctx)
	if err != nil {
		return err
	}
	return a.Ruled.NoteImport(ctx, number, counts)
}

func (a *asUser) Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error) {
	ctx, err := a.rights(ctx)
	if err != nil {
		return nil, err
	}
	return a.Ruled.Ingest(ctx, records, o)
}

func (a *asUser) Get(ctx context.Context, name stele.ID) (*stele.Record, error) {
	ctx, err := a.rights(ctx)
	if err != nil {
		return nil, err
	}
	return a.Ruled.Get(ctx, name)
}

func (a *asUser) Export(ctx context.Context, key stele.NamespaceKey, history bool) iter.Seq2[*stele.Record, error] {
	ctx, err := a.rights(ctx)
	if err != nil {
		return func(yield func(*stele.Record, error) bool) { yield(nil, err) }
	}
	return a.Ruled.Export(ctx, key, history)
}
