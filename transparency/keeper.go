package transparency

import (
	"context"
	"iter"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// asServer keeps cells as the server does, for whichever caller: readers of the log have no rights of their own in its cells.
type asServer struct{ Keeper }

func local(ctx context.Context) context.Context { return auth.With(ctx, auth.Local()) }

func (s asServer) LogCell(ctx context.Context, name string) ([]byte, error) {
	return s.Keeper.LogCell(local(ctx), name)
}

func (s asServer) LogPart(ctx context.Context, name string, from, count int) ([]byte, int, error) {
	return s.Keeper.LogPart(local(ctx), name, from, count)
}

func (s asServer) LogValues(ctx context.Context, names []string) ([][]byte, error) {
	return s.Keeper.LogValues(local(ctx), names)
}

func (s asServer) LogList(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	return s.Keeper.LogList(local(ctx), prefix, after)
}

func (s asServer) KeepLog(ctx context.Context, changes ...stele.CellChange) error {
	return s.Keeper.KeepLog(local(ctx), changes...)
}
