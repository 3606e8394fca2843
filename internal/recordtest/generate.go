// Package recordtest has what the tests of several packages share: generators of records and
// namespaces, with anything in every field or valid, samples, and small schemes.
package recordtest

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stele-id/stele"
	"pgregory.net/rapid"
)

// Same compares records and namespaces; an empty list equals none.
var Same = cmp.Options{cmpopts.EquateEmpty(), cmp.AllowUnexported(stele.ID{})}

// BytesText is text of any bytes, mostly legible.
var BytesText = rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) }))

// AnyTime is a time in UTC, far away, near, or zero.
var AnyTime = rapid.Custom(func(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "zero") {
		return time.Time{}
	}
	return time.Unix(rapid.Int64().Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
})

var AnyID = rapid.Custom(func(t *rapid.T) stele.ID {
	return stele.StoredID(rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "scheme"), BytesText.Draw(t, "text"))
})

func Few[T any](g *rapid.Generator[T]) *rapid.Generator[[]T] { return rapid.SliceOfN(g, 0, 4) }

var AnyPersistence = rapid.Custom(func(t *rapid.T) stele.Persistence {
	return stele.Persistence{Level: stele.Level(BytesText.Draw(t, "level")), Until: BytesText.Draw(t, "until"), Statement: BytesText.Draw(t, "statement")}
})

// AnyRecord has anything in every field, valid or not.
var AnyRecord = rapid.Custom(func(t *rapid.T) *stele.Record {
	r := &stele.Record{
		ID:          AnyID.Draw(t, "id"),
		Spelling:    BytesText.Draw(t, "spelling"),
		Aliases:     Few(AnyID).Draw(t, "aliases"),
		State:       stele.State(BytesText.Draw(t, "state")),
		Targets:     Few(AnyTarget).Draw(t, "targets"),
		Metadata:    rapid.MapOfN(BytesText, BytesText, 0, 5).Draw(t, "metadata"),
		Persistence: AnyPersistence.Draw(t, "persistence"),
		Values: Few(rapid.Custom(func(t *rapid.T) stele.HandleValue {
			return stele.HandleValue{
				Index:       rapid.Uint32().Draw(t, "index"),
				Type:        BytesText.Draw(t, "type"),
				Data:        rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "data"),
				TTL:         rapid.Uint32().Draw(t, "ttl"),
				TTLAbsolute: rapid.Bool().Draw(t, "absolute"),
				Timestamp:   rapid.Uint32().Draw(t, "timestamp"),
				Permissions: stele.Permission(rapid.Byte().Draw(t, "permissions")),
				References: Few(rapid.Custom(func(t *rapid.T) stele.HandleReference {
					return stele.HandleReference{Handle: BytesText.Draw(t, "handle"), Index: rapid.Uint32().Draw(t, "index")}
				})).Draw(t, "references"),
			}
		})).Draw(t, "values"),
		Readers: Few(BytesText).Draw(t, "readers"),
		Signatures: Few(rapid.Custom(func(t *rapid.T) (s stele.Signature) {
			copy(s.SHA256[:], rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "sha256"))
			s.Size, s.Type, s.Date = rapid.Uint64().Draw(t, "size"), BytesText.Draw(t, "type"), AnyTime.Draw(t, "date")
			s.Key, s.JWS = BytesText.Draw(t, "key"), BytesText.Draw(t, "jws")
			return s
		})).Draw(t, "signatures"),
		Version:  rapid.Uint64().Draw(t, "version"),
		Created:  AnyTime.Draw(t, "created"),
		Modified: AnyTime.Draw(t, "modified"),
		By:       BytesText.Draw(t, "by"),
		Redacted: rapid.Bool().Draw(t, "redacted"),
		Import:   rapid.Uint64().Draw(t, "import"),
		Withheld: stele.Withheld{
			Redacted: rapid.Uint64().Draw(t, "upTo"),
			Erased:   rapid.Uint64().Draw(t, "erased"),
			Disavowed: Few(rapid.Custom(func(t *rapid.T) stele.Disavowal {
				return stele.Disavowal{
					First: rapid.Uint64().Draw(t, "first"), Last: rapid.Uint64().Draw(t, "last"),
					Reason: BytesText.Draw(t, "why"), At: AnyTime.Draw(t, "when"), By: BytesText.Draw(t, "who"),
				}
			})).Draw(t, "disavowed"),
		},
	}
	if rapid.Bool().Draw(t, "open") {
		r.Withheld = stele.Withheld{}
	}
	if rapid.Bool().Draw(t, "withdrawn") {
		r.Tombstone = &stele.Tombstone{Reason: BytesText.Draw(t, "reason"), At: AnyTime.Draw(t, "at"), Replacement: AnyID.Draw(t, "replacement")}
	}
	return r
})

// AnyNamespace has anything in every field, valid or not.
var AnyNamespace = rapid.Custom(func(t *rapid.T) *stele.Namespace {
	return &stele.Namespace{
		Scheme: BytesText.Draw(t, "scheme"),
		Prefix: BytesText.Draw(t, "prefix"),
		Owner:  BytesText.Draw(t, "owner"),
		Title:  BytesText.Draw(t, "title"),
		Minter: stele.Minter{
			Kind:         stele.MinterKind(BytesText.Draw(t, "kind")),
			Host:         BytesText.Draw(t, "host"),
			Port:         rapid.Uint16().Draw(t, "port"),
			IP:           BytesText.Draw(t, "ip"),
			IPPort:       rapid.Uint16().Draw(t, "ipPort"),
			AllowPrivate: rapid.Bool().Draw(t, "allowPrivate"),
			Granularity:  BytesText.Draw(t, "granularity"),
			Template:     BytesText.Draw(t, "template"),
			Seed:         rapid.Uint64().Draw(t, "seed"),
			Order:        stele.MinterOrder(BytesText.Draw(t, "order")),
			Expand:       rapid.Uint8().Draw(t, "expand"),
		},
		TTL:         rapid.Uint32().Draw(t, "ttl"),
		Status:      rapid.Int().Draw(t, "status"),
		Persistence: AnyPersistence.Draw(t, "persistence"),
		Hosts:       Few(BytesText).Draw(t, "hosts"),
		Protocols:   Few(BytesText).Draw(t, "protocols"),
		Delegate:    BytesText.Draw(t, "delegate"),
		Checked:     rapid.Bool().Draw(t, "checked"),
		Passthrough: rapid.Bool().Draw(t, "passthrough"),
		Reviewed:    rapid.Bool().Draw(t, "reviewed"),
		Listed:      rapid.Bool().Draw(t, "listed"),
		Rules:       Few(AnyRule).Draw(t, "rules"),
		Handles:     stele.HandleService{Off: rapid.Bool().Draw(t, "handles off"), PublicWrite: rapid.Bool().Draw(t, "public write")},
		Quota:       rapid.Uint64().Draw(t, "quota"),
		Publication: AnyPublication.Draw(t, "publication"),
		Grants: Few(rapid.Custom(func(t *rapid.T) stele.Grant {
			return stele.Grant{To: BytesText.Draw(t, "to"), Role: stele.Role(BytesText.Draw(t, "role"))}
		})).Draw(t, "grants"),
		Keys: Few(rapid.Custom(func(t *rapid.T) stele.SigningKey {
			return stele.SigningKey{
				ID:        BytesText.Draw(t, "id"),
				Algorithm: BytesText.Draw(t, "algorithm"),
				Public:    rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "public"),
				Created:   AnyTime.Draw(t, "made"),
				Expires:   AnyTime.Draw(t, "expires"),
				Revoked:   AnyTime.Draw(t, "revoked"),
				Note:      BytesText.Draw(t, "note"),
			}
		})).Draw(t, "keys"),
		Version:  rapid.Uint64().Draw(t, "version"),
		Created:  AnyTime.Draw(t, "created"),
		Modified: AnyTime.Draw(t, "modified"),
		By:       BytesText.Draw(t, "by"),
	}
})

// AnyPublication has anything in every field, and often nothing at all.
var AnyPublication = rapid.Custom(func(t *rapid.T) stele.Publication {
	if rapid.Bool().Draw(t, "none") {
		return stele.Publication{}
	}
	return stele.Publication{
		Zone:    BytesText.Draw(t, "zone"),
		Layout:  stele.Layout(BytesText.Draw(t, "layout")),
		Signing: stele.Signing(BytesText.Draw(t, "signing")),
		Secondaries: Few(rapid.Custom(func(t *rapid.T) stele.Secondary {
			return stele.Secondary{Network: BytesText.Draw(t, "network"), Key: BytesText.Draw(t, "key"), Notify: Few(BytesText).Draw(t, "notify")}
		})).Draw(t, "secondaries"),
		Records: Few(rapid.Custom(func(t *rapid.T) stele.ZoneRecord {
			return stele.ZoneRecord{Name: BytesText.Draw(t, "name"), TTL: rapid.Uint32().Draw(t, "ttl"), Type: stele.RecordType(BytesText.Draw(t, "type")), Data: BytesText.Draw(t, "data")}
		})).Draw(t, "records"),
		Catalog:   BytesText.Draw(t, "catalog"),
		Exact:     rapid.Bool().Draw(t, "exact"),
		Separator: BytesText.Draw(t, "separator"),
		Parts:     rapid.Int().Draw(t, "parts"),
		Servers: Few(rapid.Custom(func(t *rapid.T) stele.NameServer {
			return stele.NameServer{Name: BytesText.Draw(t, "name"), Addresses: Few(BytesText).Draw(t, "addresses")}
		})).Draw(t, "servers"),
		Mailbox:  BytesText.Draw(t, "mailbox"),
		Resolver: BytesText.Draw(t, "resolver"),
		Elsewhere: Few(rapid.Custom(func(t *rapid.T) stele.Discovery {
			return stele.Discovery{Kind: stele.DiscoveryKind(BytesText.Draw(t, "kind")), At: BytesText.Draw(t, "at")}
		})).Draw(t, "elsewhere"),
	}
})

// What follows is valid. Names are of the toy schemes ab and cd.

var GoodID = rapid.Custom(func(t *rapid.T) stele.ID {
	scheme := rapid.SampledFrom([]string{"ab", "cd"}).Draw(t, "scheme")
	return stele.StoredID(scheme, scheme+":"+rapid.StringMatching(`[a-z0-9/."\\<é中 -]{1,12}`).Draw(t, "name"))
})

// Prose is what people write: anything but control characters and turns.
var Prose = rapid.Map(rapid.String(), func(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && unicode.IsControl(r) || r == 0x202d || r == 0x202e {
			return '\n'
		}
		return r
	}, s)
})

var GoodName = rapid.StringMatching(`[A-Za-z0-9."é\\-]{1,12}`)

// GoodTime is a time that RFC 3339 can write.
var GoodTime = rapid.Custom(func(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "zero") {
		return time.Time{}
	}
	nanoseconds := rapid.SampledFrom([]int64{0, 1, 500_000_000, 999_999_999}).Draw(t, "nanoseconds")
	return time.Unix(rapid.Int64Range(-62_135_596_800, 253_402_300_799).Draw(t, "seconds"), nanoseconds).UTC()
})

// protocols are those that a target may have.
const protocols = "http https ftp ftps sftp rsync rtsp"

var GoodURL = rapid.Custom(func(t *rapid.T) string {
	protocol := rapid.SampledFrom(strings.Fields(protocols+" HTTPS Ftp")).Draw(t, "protocol")
	host := rapid.SampledFrom([]string{"example.org", "EXAMPLE.org", "a", "a_b.c-d.org", "192.0.2.1", "[2001:db8::1]", "xn--bcher-kva.example", "1a.x"}).Draw(t, "host")
	port := rapid.SampledFrom([]string{"", ":1", ":8080", ":65535"}).Draw(t, "port")
	path := rapid.StringMatching(`(/[A-Za-z0-9._~!$&'()*+,;=:@\[\]-]{0,8}|/%[0-9a-fA-F]{2}){0,4}`).Draw(t, "path")
	query := rapid.StringMatching(`(\?[A-Za-z0-9/?=&%20\[\]-]{0})?(\?[a-z0-9/?=&:@\[\]-]{0,12})?(#[a-z0-9/?-]{0,5})?`).Draw(t, "query")
	return protocol + "://" + host + port + path + query
})

var GoodTarget = rapid.Custom(func(t *rapid.T) stele.Target {
	return stele.Target{
		Service:    rapid.SampledFrom([]stele.Service{stele.N2L, stele.N2C, stele.N2S, stele.N2P}).Draw(t, "service"),
		URL:        GoodURL.Draw(t, "url"),
		Type:       rapid.SampledFrom([]string{"", "text/html", "application/ld+json", `text/plain; charset=utf-8; x="a;\"b\""`}).Draw(t, "type"),
		Language:   rapid.SampledFrom([]string{"", "en", "pt-BR", "zh-Hant-TW", "x-own", "i-klingon", "de-1996"}).Draw(t, "language"),
		Order:      rapid.SampledFrom([]uint16{0, stele.DefaultOrder, math.MaxUint16}).Draw(t, "order"),
		Preference: rapid.SampledFrom([]uint16{0, stele.DefaultPreference, math.MaxUint16}).Draw(t, "preference"),
		TTL:        rapid.Uint32Range(0, stele.MaxTTL).Draw(t, "ttl"),
		Status:     rapid.SampledFrom([]int{0, 301, 302, 303, 307, 308, 404, 410}).Draw(t, "status"),
		Partial:    rapid.Bool().Draw(t, "partial"),
	}
})

var GoodPersistence = rapid.Custom(func(t *rapid.T) stele.Persistence {
	return stele.Persistence{
		Level:     rapid.SampledFrom([]stele.Level{stele.Unstated, stele.Permanent, stele.Unchanging, stele.Stable, stele.Dynamic, stele.NotGuaranteed}).Draw(t, "level"),
		Until:     rapid.SampledFrom([]string{"", "2040-01-01", "2096-02-29"}).Draw(t, "until"),
		Statement: Prose.Draw(t, "statement"),
	}
})

var GoodValue = rapid.Custom(func(t *rapid.T) stele.HandleValue {
	return stele.HandleValue{
		Index:       rapid.Uint32Min(1).Draw(t, "index"),
		Type:        GoodName.Draw(t, "type"),
		Data:        rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "data"),
		TTL:         rapid.Uint32().Draw(t, "ttl"),
		TTLAbsolute: rapid.Bool().Draw(t, "absolute"),
		Timestamp:   rapid.Uint32().Draw(t, "timestamp"),
		Permissions: stele.Permission(rapid.ByteRange(0, byte(stele.PublicWrite|stele.PublicRead|stele.AdminWrite|stele.AdminRead)).Draw(t, "permissions")),
		References: Few(rapid.Custom(func(t *rapid.T) stele.HandleReference {
			return stele.HandleReference{Handle: GoodName.Draw(t, "handle"), Index: rapid.Uint32().Draw(t, "index")}
		})).Draw(t, "references"),
	}
})

// GoodSecond is a time that is signed or published.
var GoodSecond = rapid.Custom(func(t *rapid.T) time.Time {
	return time.Unix(rapid.Int64Range(0, 253_402_300_799).Draw(t, "seconds"), 0).UTC()
})

var GoodThumbprint = rapid.StringMatching(`[A-Za-z0-9_-]{43}`)

// GoodSignature has the form of a signature, but no key made it.
var GoodSignature = rapid.Custom(func(t *rapid.T) (s stele.Signature) {
	s.SHA256[rapid.IntRange(0, 31).Draw(t, "at")] = rapid.ByteRange(1, 255).Draw(t, "byte")
	s.Size = rapid.Uint64Range(0, stele.MaxSignedSize).Draw(t, "size")
	s.Type = rapid.SampledFrom([]string{"", "text/html", `text/plain; charset=utf-8; x="a;\"b\""`}).Draw(t, "type")
	s.Date, s.Key = GoodSecond.Draw(t, "date"), GoodThumbprint.Draw(t, "key")
	s.JWS = rapid.StringMatching(`[A-Za-z0-9_-]{1,9}\.\.[A-Za-z0-9_-]{1,9}`).Draw(t, "jws")
	return s
})

// GoodKey has the form of a key.
var GoodKey = rapid.Custom(func(t *rapid.T) stele.SigningKey {
	k := stele.SigningKey{
		ID:        GoodThumbprint.Draw(t, "id"),
		Algorithm: rapid.SampledFrom([]string{stele.KeyED25519, stele.KeyECDSA, stele.KeyRSA}).Draw(t, "algorithm"),
		Public:    rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "public"),
		Created:   time.Unix(rapid.Int64Range(0, 1<<32).Draw(t, "made"), 0).UTC(),
		Note:      rapid.SampledFrom([]string{"", "in the safe"}).Draw(t, "note"),
	}
	if rapid.Bool().Draw(t, "ends") {
		k.Expires = k.Created.Add(time.Hour)
	}
	if rapid.Bool().Draw(t, "is revoked") {
		k.Revoked = GoodSecond.Draw(t, "revoked")
	}
	return k
})

var GoodRecord = rapid.Custom(func(t *rapid.T) *stele.Record {
	names := rapid.SliceOfNDistinct(GoodID, 1, 5, rapid.ID[stele.ID]).Draw(t, "names")
	r := &stele.Record{
		ID:          names[0],
		Aliases:     names[1:],
		State:       rapid.SampledFrom([]stele.State{stele.Active, stele.Reserved, stele.Withdrawn}).Draw(t, "state"),
		Targets:     Few(GoodTarget).Draw(t, "targets"),
		Metadata:    rapid.MapOfN(rapid.StringMatching(`who|what|when|where|[a-z][a-z0-9._-]{0,9}`), Prose, 0, 5).Draw(t, "metadata"),
		Persistence: GoodPersistence.Draw(t, "persistence"),
		Values:      rapid.SliceOfNDistinct(GoodValue, 0, 3, func(v stele.HandleValue) uint32 { return v.Index }).Draw(t, "values"),
		Readers:     rapid.SliceOfNDistinct(rapid.Map(GoodName, func(s string) string { return "group:" + s }), 0, 3, rapid.ID[string]).Draw(t, "readers"),
		Signatures:  rapid.SliceOfNDistinct(GoodSignature, 0, 3, func(s stele.Signature) string { return s.JWS }).Draw(t, "signatures"),
		Version:     rapid.Uint64().Draw(t, "version"),
		Created:     GoodTime.Draw(t, "created"),
		Modified:    GoodTime.Draw(t, "modified"),
		By:          GoodName.Draw(t, "by"),
		Redacted:    rapid.Bool().Draw(t, "redacted"),
		Import:      rapid.Uint64().Draw(t, "import"),
	}
	if rapid.Bool().Draw(t, "withholds") {
		r.Withheld.Redacted, r.Withheld.Erased = rapid.Uint64().Draw(t, "upTo"), rapid.Uint64().Draw(t, "erased")
		r.Withheld.Disavowed = Few(rapid.Custom(func(t *rapid.T) stele.Disavowal {
			first := rapid.Uint64Range(1, 1<<63).Draw(t, "first")
			return stele.Disavowal{
				First: first, Last: first + rapid.Uint64Range(0, 9).Draw(t, "more"),
				Reason: "because " + Prose.Draw(t, "why"), At: GoodTime.Draw(t, "when"), By: GoodName.Draw(t, "who"),
			}
		})).Draw(t, "disavowed")
	}
	if loud := r.ID.Scheme() + ":" + strings.ToUpper(r.ID.String()[3:]); loud != r.ID.String() && rapid.Bool().Draw(t, "loud") {
		r.Spelling = loud
	}
	if r.State == stele.Withdrawn {
		r.Tombstone = &stele.Tombstone{Reason: "because " + Prose.Draw(t, "reason"), At: GoodTime.Draw(t, "at")}
		if rapid.Bool().Draw(t, "replaced") {
			r.Tombstone.Replacement = stele.StoredID("cd", "cd:new "+strconv.Itoa(rapid.Int().Draw(t, "new")))
		}
	}
	return r
})

var GoodMinter = rapid.SampledFrom([]stele.Minter{
	{},
	{Kind: stele.MinterUUID},
	{Kind: stele.MinterNOID, Template: ".reedeedk", Seed: math.MaxUint64},
	{Kind: stele.MinterNOID, Template: ".reedk", Order: stele.OrderNOID, Expand: 3},
	{Kind: stele.MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80},
	{Kind: stele.MinterIBI, IP: "150.163.2.174", IPPort: 800, Granularity: "1us"},
	{Kind: stele.MinterIBI, Host: "a.example.org", Port: 8080, IP: "10.0.0.1", IPPort: 1, AllowPrivate: true},
})

var GoodNamespace = rapid.Custom(func(t *rapid.T) *stele.Namespace {
	return &stele.Namespace{
		Scheme:      "ibi",
		Prefix:      rapid.SampledFrom([]string{"", "ibi:x", `ibi:"é`}).Draw(t, "prefix"),
		Owner:       GoodName.Draw(t, "owner"),
		Title:       Prose.Draw(t, "title"),
		Minter:      GoodMinter.Draw(t, "minter"),
		TTL:         rapid.Uint32Range(0, stele.MaxTTL).Draw(t, "ttl"),
		Status:      rapid.SampledFrom([]int{0, 301, 302, 303, 307, 308, 404, 410}).Draw(t, "status"),
		Persistence: GoodPersistence.Draw(t, "persistence"),
		Hosts:       rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"example.org", ".example.org", "192.0.2.1", "2001:db8::1"}), 0, 4, rapid.ID[string]).Draw(t, "hosts"),
		Protocols:   rapid.SliceOfNDistinct(rapid.SampledFrom(strings.Fields(protocols)), 0, 4, rapid.ID[string]).Draw(t, "protocols"),
		Delegate:    rapid.SampledFrom([]string{"", "https://resolver.example.org/{id}", "http://example.org/a?b={rest}&c={id}"}).Draw(t, "delegate"),
		Quota:       rapid.Uint64().Draw(t, "quota"),
		Passthrough: rapid.Bool().Draw(t, "passthrough"),
		Reviewed:    rapid.Bool().Draw(t, "reviewed"),
		Listed:      rapid.Bool().Draw(t, "listed"),
		Rules:       rapid.SliceOfNDistinct(GoodRule, 0, 3, func(r stele.Rule) string { return r.Pattern }).Draw(t, "rules"),
		Handles:     stele.HandleService{Off: rapid.Bool().Draw(t, "handles off"), PublicWrite: rapid.Bool().Draw(t, "public write")},
		Grants: rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) stele.Grant {
			return stele.Grant{
				To:   rapid.SampledFrom([]string{"user:", "group:"}).Draw(t, "kind") + "n" + GoodName.Draw(t, "to"),
				Role: rapid.SampledFrom([]stele.Role{stele.RoleReader, stele.RoleEditor, stele.RoleOwner}).Draw(t, "role"),
			}
		}), 0, 3, func(g stele.Grant) string { return g.To }).Draw(t, "grants"),
		Keys:      rapid.SliceOfNDistinct(GoodKey, 0, 3, func(k stele.SigningKey) string { return k.ID }).Draw(t, "keys"),
		Heirs:     rapid.SliceOfNDistinct(GoodHeir, 0, 3, func(h stele.Heir) string { return h.Registry }).Draw(t, "heirs"),
		HandOver:  GoodHandOver.Draw(t, "hand-over"),
		Adoptions: Few(GoodAdoption).Draw(t, "adoptions"),
		Version:   rapid.Uint64().Draw(t, "version"),
		Created:   GoodTime.Draw(t, "created"),
		Modified:  GoodTime.Draw(t, "modified"),
		By:        GoodName.Draw(t, "by"),
	}
})

// GoodHeir is one that [stele.Namespace.Validate] accepts.
var GoodHeir = rapid.Custom(func(t *rapid.T) stele.Heir {
	return stele.Heir{
		Registry: rapid.SampledFrom([]string{"heir.example.org/.log", "b", "c.example.org"}).Draw(t, "registry"),
		Address:  rapid.SampledFrom([]string{"https://heir.example.org/", "http://127.0.0.1:8080/names"}).Draw(t, "address"),
		Days:     rapid.IntRange(stele.MinHeirDays, stele.MaxHeirDays).Draw(t, "days"),
	}
})

// GoodHandOver is one that [stele.Namespace.Validate] accepts.
var GoodHandOver = rapid.Custom(func(t *rapid.T) stele.HandOver {
	state := rapid.SampledFrom([]stele.HandOverState{stele.NotHandedOver, stele.Offered, stele.Sealed, stele.Forwarded}).Draw(t, "state")
	if state == stele.NotHandedOver {
		return stele.HandOver{}
	}
	return stele.HandOver{
		State: state, Heir: rapid.SampledFrom([]string{"heir.example.org/.log", "b"}).Draw(t, "heir"),
		Address: rapid.SampledFrom([]string{"https://heir.example.org/", "http://127.0.0.1:8080/names"}).Draw(t, "address"),
		Since:   GoodTime.Draw(t, "since"), By: GoodName.Draw(t, "by"),
	}
})

// GoodAdoption is one that [stele.Namespace.Validate] accepts.
var GoodAdoption = rapid.Custom(func(t *rapid.T) stele.Adoption {
	silent := rapid.Bool().Draw(t, "silent")
	var ended time.Time
	if silent {
		ended = GoodTime.Draw(t, "ended")
	}
	return stele.Adoption{
		Silent: silent, Ended: ended,
		From: "giver.example.org/.log", To: rapid.SampledFrom([]string{"", "heir.example.org/.log"}).Draw(t, "heir"),
		Generation: rapid.SampledFrom([]string{"", "00112233445566778899aabbccddeeff"}).Draw(t, "generation"),
		Bundle:     strings.Repeat(rapid.SampledFrom([]string{"0a", "f9"}).Draw(t, "digest"), 32), Change: rapid.Uint64().Draw(t, "change"),
		Until: GoodTime.Draw(t, "until"), At: GoodTime.Draw(t, "at"), By: GoodName.Draw(t, "by"), Reading: rapid.Bool().Draw(t, "reading"),
	}
})
