// Package access gives one view of a registry to the commands that work on it: [Local] is a
// registry that this process has open, [Remote] one that a server keeps. The methods that a
// registrar has too are the same in both, with the same errors, so that a command does not
// need to know where the registry is. [Registry] adds what every command asks: which name, prefix,
// version or key a text on the command line means.
//
// It prints nothing and reads no flags.
package access

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
)

// Backend is a registry in this process or at a server.
type Backend interface {
	Records
	Namespaces
	HandOver
	Watches
	Mint
	Import
	Replace
	Proposals
	Harvests
	Deposits
	TakenBundles
	Usage
	UsageSettings
	Links
	Users
	Upkeep
	Audit
	Log
}

// Records reads and writes records.
type Records interface {
	Get(ctx context.Context, name stele.ID) (*stele.Record, error)
	At(ctx context.Context, name stele.ID, t time.Time) (*stele.Record, error)
	Version(ctx context.Context, name stele.ID, version uint64) (*stele.Record, error)
	History(ctx context.Context, name stele.ID) iter.Seq2[*stele.Record, error]

	// List yields the records that a listing asks for, in the order of their names.
	// It costs more than Export where all are wanted.
	List(ctx context.Context, q remote.Listing) iter.Seq2[*stele.Record, error]

	// Search yields the records that a query asks for, the last changed first.
	Search(ctx context.Context, q remote.SearchQuery) iter.Seq2[*stele.Record, error]

	// Export yields the records that begin so, in the order of their names; with
	// history all versions of each, the oldest first.
	Export(ctx context.Context, key stele.NamespaceKey, history bool) iter.Seq2[*stele.Record, error]

	// Meant adds suggestions to the error of a name that is not found, if its check
	// character shows a typing error.
	Meant(ctx context.Context, name stele.ID, err error) error

	Register(ctx context.Context, record *stele.Record) (*stele.Record, error)
	Update(ctx context.Context, name stele.ID, ifVersion uint64, change func(*stele.Record) error) (*stele.Record, error)
	Withdraw(ctx context.Context, name stele.ID, ifVersion uint64, reason string, replacement stele.ID) (*stele.Record, error)
	Reinstate(ctx context.Context, name stele.ID, ifVersion uint64) (*stele.Record, error)
	Redact(ctx context.Context, name stele.ID, ifVersion uint64, reason string) (*stele.Record, error)
	Revert(ctx context.Context, name stele.ID, ifVersion, to uint64) (*stele.Record, error)
	Disavow(ctx context.Context, name stele.ID, ifVersion, first, last uint64, reason string) (*stele.Record, error)
}

// Namespaces reads and writes namespaces, and what belongs to them.
type Namespaces interface {
	Namespace(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error)
	Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error]
	NamespaceHistory(ctx context.Context, key stele.NamespaceKey) iter.Seq2[*stele.Namespace, error]
	ParentNamespace(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error)
	AddNamespace(ctx context.Context, ns *stele.Namespace) (*stele.Namespace, error)

	// NamespaceSamples returns the error with which AddNamespace would refuse a namespace, or names such as
	// its minter would make. It writes nothing.
	NamespaceSamples(ctx context.Context, ns *stele.Namespace) ([]string, error)
	SetNamespace(ctx context.Context, key stele.NamespaceKey, ifVersion uint64, change func(*stele.Namespace) error) (*stele.Namespace, error)

	// JudgeRules returns all that is wrong with the rules of a namespace that is there, or with others in their place: that for which
	// SetNamespace would refuse them. It writes nothing.
	JudgeRules(ctx context.Context, ns *stele.Namespace) (stele.Problems, error)
	MinterStatus(ctx context.Context, key stele.NamespaceKey) (minting.Status, error)
	SkipCounter(ctx context.Context, key stele.NamespaceKey, to uint64) error

	// CheckRules yields the records that the rules of a namespace would refuse now.
	CheckRules(ctx context.Context, key stele.NamespaceKey, progress func(read int)) iter.Seq2[registrar.Breach, error]

	// PURLHosts returns the hosts whose http names are PURLs; AddPURLHosts adds some, and
	// returns all.
	PURLHosts(ctx context.Context) ([]string, error)
	AddPURLHosts(ctx context.Context, hosts ...string) ([]string, error)

	// ZoneStates yields what is kept about zones, and RaiseZone gives one a higher serial.
	ZoneStates(ctx context.Context) iter.Seq2[stele.ZoneState, error]
	RaiseZone(ctx context.Context, zone string, above *uint32) (stele.ZoneState, error)

	// Count returns how many records count for a namespace.
	Count(ctx context.Context, key stele.NamespaceKey) (uint64, error)
}

// Mint makes new names.
type Mint interface {
	MintPool(ctx context.Context, pool []stele.NamespaceKey, n int) ([]minting.Label, error)

	// MintRecords makes n names, registers a record like rec under each, and yields
	// them as they are durable. After an error, or when the context ends, it still
	// yields what was under way.
	MintRecords(ctx context.Context, rec *stele.Record, pool []stele.NamespaceKey, n int) iter.Seq2[*stele.Record, error]
}

// Import takes many records at a time, and lists and reverts imports.
type Import interface {
	Bookmark(ctx context.Context, name string) ([]byte, error)
	Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error)
	IngestNamespace(ctx context.Context, ns *stele.Namespace, o registrar.ImportOptions) error

	BeginImport(ctx context.Context, label string) (uint64, error)
	NoteImport(ctx context.Context, number uint64, n registrar.ImportCounts) error
	Imports(ctx context.Context, after uint64) iter.Seq2[registrar.Import, error]
	RevertImport(ctx context.Context, number uint64, o registrar.RevertOptions, told func(registrar.RevertStep) error) (registrar.RevertResult, error)
}

// Proposals reads, makes and decides about proposals.
type Proposals interface {
	// Proposals yields the proposals that the caller may decide about, and the caller's own.
	Proposals(ctx context.Context) iter.Seq2[*registrar.Proposal, error]
	Proposal(ctx context.Context, id string) (p *registrar.Proposal, decide bool, err error)
	Propose(ctx context.Context, p registrar.Proposal) (*registrar.Proposal, error)
	Approve(ctx context.Context, id string) (*stele.Record, error)
	Decline(ctx context.Context, id, reason string) error
}

// Harvests reads and changes the harvests that servers do.
type Harvests interface {
	Harvests(ctx context.Context) ([]registrar.ScheduledHarvest, error)
	AddHarvest(ctx context.Context, h registrar.ScheduledHarvest) error
	StopHarvest(ctx context.Context, name string) error
	AskHarvest(ctx context.Context, name string, yes bool) error
}

// Deposits reads what is known of the deposits that servers make.
type Deposits interface {
	Deposits(ctx context.Context) ([]registrar.ScheduledDeposit, error)
}

// TakenBundles reads what is known of bundles that were made by hand, and notes checks of them.
type TakenBundles interface {
	TakenBundles(ctx context.Context) ([]registrar.TakenBundle, error)
	NoteChecked(ctx context.Context, manifest string) error
}

// Users reads and writes users and tokens.
type Users interface {
	// Me returns the user that the program acts as.
	Me(ctx context.Context) (auth.Principal, error)

	AddUser(ctx context.Context, u auth.User) (auth.User, error)
	SetUser(ctx context.Context, name string, change func(*auth.User) error) (auth.User, error)
	User(ctx context.Context, name string) (auth.User, error)
	Users(ctx context.Context) iter.Seq2[auth.User, error]
	CreateToken(ctx context.Context, want auth.TokenRequest) (credential string, t auth.Token, err error)
	// CreateLink makes a link that signs a user in to the desk once.
	CreateLink(ctx context.Context, user string, life time.Duration) (credential string, l auth.Link, err error)
	// Invite adds a user, with a role and a link to begin with.
	Invite(ctx context.Context, in registrar.Invitation) (registrar.Invited, error)
	// Links yields the links of a user, or of all users if that is empty, that were not used.
	Links(ctx context.Context, user string) iter.Seq2[auth.Link, error]
	EndLink(ctx context.Context, id string) error
	// Identities yields the accounts at other systems that sign a user in.
	Identities(ctx context.Context, user string) iter.Seq2[auth.Identity, error]
	EndIdentity(ctx context.Context, user, id string) error
	Passkeys(ctx context.Context, user string) iter.Seq2[auth.Passkey, error]
	RenamePasskey(ctx context.Context, id, name string) error
	RemovePasskey(ctx context.Context, id string) error
	// RemovePassword removes the password of a user, with its authenticator app.
	RemovePassword(ctx context.Context, user string) error
	Tokens(ctx context.Context, user string) iter.Seq2[auth.Token, error]
	RevokeToken(ctx context.Context, id string) (auth.Token, error)
	OpenToken(ctx context.Context, id string) (auth.Token, error)
}

// Upkeep copies, checks and compacts the registry as a whole.
type Upkeep interface {
	// Source returns what zones are made from.
	Source() publish.Store

	// Backup copies the registry to a new folder, and returns how many changes it
	// has. Those that came meanwhile may be in the copy or not.
	Backup(ctx context.Context, folder string) (changes uint64, err error)

	// Purge removes from the store's files what was erased.
	Purge(ctx context.Context) error

	// Check looks at all that the registry keeps, and returns how many changes it has.
	Check(ctx context.Context, tell remote.Inspection) (changes uint64, err error)
}

// Audit reads the audit trail.
type Audit interface {
	// AuditPage returns a part of the trail that a query asks for, the number up to which
	// it was read, and whether that is the end for now.
	AuditPage(ctx context.Context, q registrar.AuditQuery) (page []audit.Document, after uint64, last bool, err error)
}

// Registry is a registry, and what a command needs to know about it.
type Registry struct {
	Backend
	Schemes   *stele.Schemes
	Now       func() time.Time
	Place     string // where it is, for messages
	ChunkRows int    // how many records of an import are committed together
}

// Parse reads an identifier.
func (l *Registry) Parse(text string) (stele.ID, error) { return l.Schemes.Parse(text) }

// ParsePrefix reads the prefix of a namespace. That of handles may be written without its
// slash.
func (l *Registry) ParsePrefix(text string) (stele.NamespaceKey, error) {
	key, err := namespaces.ParsePrefix(l.Schemes, text)
	if err == nil || strings.HasSuffix(text, "/") {
		return key, err
	}
	if with, slashErr := namespaces.ParsePrefix(l.Schemes, text+"/"); slashErr == nil {
		return with, nil
	}
	return key, err
}

// Find returns the record that has a name, at a time if that is not zero, or the
// version of it if that is not 0.
func (l *Registry) Find(ctx context.Context, text string, at time.Time, version uint64) (*stele.Record, error) {
	id, err := l.Parse(text)
	if err != nil {
		return nil, err
	}
	var rec *stele.Record
	switch {
	case !at.IsZero():
		rec, err = l.At(ctx, id, at)
	case version != 0:
		rec, err = l.Version(ctx, id, version)
	default:
		rec, err = l.Get(ctx, id)
	}
	if err != nil {
		return nil, l.Meant(ctx, id, err)
	}
	return rec, nil
}

// followPause is how long AuditTrail waits before it asks for more entries.
const followPause = time.Second

// AuditTrail yields the entries of the audit trail that a query asks for, the oldest first. With follow
// it goes on with entries as they come, until the context ends.
func (l *Registry) AuditTrail(ctx context.Context, q registrar.AuditQuery, follow bool) iter.Seq2[*audit.Document, error] {
	return func(yield func(*audit.Document, error) bool) {
		for {
			page, after, last, err := l.AuditPage(ctx, q)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page {
				if !yield(&page[i], nil) {
					return
				}
			}
			if q.After = after; !last {
				continue
			}
			if !follow {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(followPause):
			}
		}
	}
}
