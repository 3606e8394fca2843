package api

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/registrar"
)

// Upkeep is what only the running server can do or knows. All of it may be left out; then the
// API does not offer it, or does not show it.
type Upkeep struct {
	// Version is that of the program.
	Version string

	// Disk says how much room the disk of the registry has, in bytes.
	Disk func() (free, total uint64, err error)

	// Certificates says which certificates the server shows.
	Certificates func() []Certificate

	// Zones says for which zones the server answers the DNS.
	Zones func(ctx context.Context) ([]string, error)

	// Secondaries asks the secondaries of a zone for the serials of their copies.
	Secondaries func(ctx context.Context, zone string) ([]stele.SecondaryAnswer, error)

	// Keys look after the keys of zones, and of secondaries.
	Keys KeyManager

	// Handles makes the registry a site of the Handle System.
	Handles HandleSites

	// Ending is closed when the server is about to end, or the registry to be replaced:
	// streams end then.
	Ending <-chan struct{}

	// Backup makes a copy of the registry, consistent in itself, and says how many
	// changes it has. Remove removes the copy; it is called whatever happens.
	Backup func(ctx context.Context) (folder fs.FS, changes uint64, remove func() error, err error)

	// Bundle prepares a bundle of names. What the caller may have was judged; the context is the server's own.
	Bundle func(ctx context.Context, from *registrar.Bundling) (*bundle.Job, error)

	// Stage prepares to put a backup in the place of the registry. Confirm is what the
	// administrator gave to show which registry is meant: Conflict if it is another.
	Stage func(ctx context.Context, confirm string) (Staging, error)
}

// Staging is a backup on its way into the place of the registry.
type Staging interface {
	// Folder is an empty folder for the files of the backup.
	Folder() *os.Root

	// Room is how many bytes they may have.
	Room() uint64

	// Restore checks what is in the folder, and puts it in the place of the registry while
	// the server goes on. If there is an error nothing was replaced. Restore calls step with
	// each thing that it does.
	Restore(ctx context.Context, step func(what string)) (Restored, error)

	// Remove removes what is left of it. It is called whatever happens.
	Remove() error
}

// Certificate is one that the server shows.
type Certificate struct {
	Name     string // that it is for
	NotAfter time.Time
}

// Restored is what became of a restore.
type Restored struct {
	Kept    string   // the folder of the registry as it was; "" if there was none
	Changes uint64   // that the registry has now
	Shut    []string // namespaces whose templates make no names until they are skipped ahead

	Zones []RestoredZone // those with secondaries, and those that are shut
}

// RestoredZone is what a restore made of a zone.
type RestoredZone struct {
	Zone        string
	Serial      uint32
	Shut        bool
	Secondaries []stele.SecondaryAnswer // compared with the serial
}

var errEnding = stele.Messagef("request.server-ending", "the server is about to end, or to take up another registry; go on in a moment")

// running makes the call end when the server is about to end: the server does not wait for
// streams.
func (c *call) running() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.ctx)
	c.ctx = ctx
	if ending := c.h.o.Upkeep.Ending; ending != nil {
		go func() {
			select {
			case <-ending:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// duties are what is done for one caller at a time.
type duties struct {
	verify sync.Mutex
	copy   sync.Mutex // a backup or a restore
}

// busy says that another request has the duty.
func busy(c *call, why string) error {
	return &stele.Error{Op: c.op.name, Kind: stele.Exhausted, Err: stele.Messagef("server.busy", "{reason}; try again when that is done", why)}
}

// beat is how often the server tells a client that a long operation goes on.
const beat = 5 * time.Second

// attend runs an operation that takes long. Meanwhile it writes the lines that do passes to
// tell, and an empty object now and then. When the client is gone the context ends.
func (c *call) attend(out *stream, do func(ctx context.Context, tell func(line any)) error) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	lines, done := make(chan any), make(chan error, 1)
	tell := func(line any) {
		select {
		case lines <- line:
		case <-ctx.Done():
		}
	}
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				c.h.o.Log.ErrorContext(c.ctx, "a request made the server fail; please report it", "operation", c.op.name, "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
				done <- &stele.Error{Op: c.op.name, Kind: stele.Internal, Err: stele.Messagef("server.fault", "a fault")}
			}
		}()
		done <- do(ctx, tell)
	}()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	var gone error
	for {
		var line any
		select {
		case err := <-done:
			if gone != nil {
				return gone
			}
			return err
		case line = <-lines:
		case <-tick.C:
			line = struct{}{}
		}
		if gone != nil {
			continue
		}
		if gone = out.line(line); gone == nil {
			gone = out.flush()
		}
		if gone != nil {
			cancel()
		}
	}
}
