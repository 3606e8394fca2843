package main

import (
	"context"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/publish/zonekey"
)

// keyKeeper reads and changes the keys of one zone, in a folder or at a server.
type keyKeeper interface {
	// status returns the keys. parent is the TTL of the DS records at the parent; a day if
	// 0.
	status(ctx context.Context, parent time.Duration) (*zonekey.Status, error)

	// change does something with them.
	change(ctx context.Context, c zonekey.Change) (*zonekey.Status, error)
}

// localKeys are the keys of a zone of a registry that this process has open.
type localKeys struct {
	zonekey.Manager
	zone string
}

func (k *localKeys) status(ctx context.Context, parent time.Duration) (*zonekey.Status, error) {
	return k.Status(ctx, k.zone, parent)
}

func (k *localKeys) change(ctx context.Context, c zonekey.Change) (*zonekey.Status, error) {
	return k.Change(ctx, k.zone, c)
}

// remoteKeys are the keys of a zone of a server's registry.
type remoteKeys struct {
	r   *remote.Registry
	key stele.NamespaceKey
}

func (k *remoteKeys) status(ctx context.Context, parent time.Duration) (*zonekey.Status, error) {
	return k.r.ZoneKeys(ctx, k.key, parent)
}

func (k *remoteKeys) change(ctx context.Context, c zonekey.Change) (*zonekey.Status, error) {
	return k.r.ChangeZoneKeys(ctx, k.key, c)
}
