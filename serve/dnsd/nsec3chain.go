package dnsd

import (
	"context"
	"fmt"
	"sync"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/nsec3"
)

// NSEC3Chain is the NSEC3 chain of a zone in the mode transfer, and how far its names are
// read from the registry. It is told of every change before the change is acknowledged.
type NSEC3Chain struct {
	*nsec3.Chain
	ready chan struct{}       // closed when all names are in it
	born  uint64              // changes up to this one are read from the registry; the chain is told of later ones
	late  map[string]struct{} // names to look up when all are read; under changes

	// changes is held while the records at a name are looked up and their types noted:
	// otherwise one caller could overwrite newer types with older ones.
	changes sync.Mutex
}

func NewNSEC3Chain() *NSEC3Chain {
	return &NSEC3Chain{Chain: nsec3.New(), late: make(map[string]struct{}), ready: make(chan struct{})}
}

// isReady reports whether all names are in the chain.
func (c *NSEC3Chain) isReady() bool { return isClosed(c.ready) }

// await waits until all names are in the chain.
func (c *NSEC3Chain) await(ctx context.Context) error { return await(ctx, c.ready) }

// Check returns an error as long as the chain is not complete.
func (c *NSEC3Chain) Check(zone string) error {
	if c.isReady() {
		return nil
	}
	return &stele.Error{Op: "look up", Kind: stele.Unavailable, Err: fmt.Errorf(
		"the names of %s are being read, and it is not known yet what does not exist; try again in a minute", zone)}
}
