package stele

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// same compares records and namespaces; an empty list is as good as none.
var same = cmp.Options{cmpopts.EquateEmpty(), cmp.AllowUnexported(ID{})}

// bytesText is text of any bytes, mostly legible.
var bytesText = rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) }))

// anyTime is a time in UTC, far away, near, or zero.
var anyTime = rapid.Custom(func(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "zero") {
		return time.Time{}
	}
	return time.Unix(rapid.Int64().Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
})

var anyID = rapid.Custom(func(t *rapid.T) ID {
	return ID{rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "scheme"), bytesText.Draw(t, "text")}
})

func few[T any](g *rapid.Generator[T]) *rapid.Generator[[]T] { return rapid.SliceOfN(g, 0, 4) }

var anyPersistence = rapid.Custom(func(t *rapid.T) Persistence {
	return Persistence{Level(bytesText.Draw(t, "level")), bytesText.Draw(t, "until"), bytesText.Draw(t, "statement")}
})

// anyRecord has anything in every field, valid or not.
var anyRecord = rapid.Custom(func(t *rapid.T) *Record {
	r := &Record{
		ID:       anyID.Draw(t, "id"),
		Spelling: bytesText.Draw(t, "spelling"),
		Aliases:  few(anyID).Draw(t, "aliases"),
		State:    State(bytesText.Draw(t, "state")),
		Targets: few(rapid.Custom(func(t *rapid.T) Target {
			return Target{
				Service:    Service(bytesText.Draw(t, "service")),
				URL:        bytesText.Draw(t, "url"),
				Type:       bytesText.Draw(t, "type"),
				Language:   bytesText.Draw(t, "language"),
				Order:      rapid.Uint16().Draw(t, "order"),
				Preference: rapid.Uint16().Draw(t, "preference"),
				TTL:        rapid.Uint32().Draw(t, "ttl"),
				Status:     rapid.Int().Draw(t, "status"),
				Partial:    rapid.Bool().Draw(t, "partial"),
			}
		})).Draw(t, "targets"),
		Metadata:    rapid.MapOfN(bytesText, bytesText, 0, 5).Draw(t, "metadata"),
		Persistence: anyPersistence.Draw(t, "persistence"),
		Values: few(rapid.Custom(func(t *rapid.T) HandleValue {
			return HandleValue{
				Index:       rapid.Uint32().Draw(t, "index"),
				Type:        bytesText.Draw(t, "type"),
				Data:        rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "data"),
				TTL:         rapid.Uint32().Draw(t, "ttl"),
				TTLAbsolute: rapid.Bool().Draw(t, "absolute"),
				Timestamp:   rapid.Uint32().Draw(t, "timestamp"),
				Permissions: Permission(rapid.Byte().Draw(t, "permissions")),
				References: few(rapid.Custom(func(t *rapid.T) HandleReference {
					return HandleReference{bytesText.Draw(t, "handle"), rapid.Uint32().Draw(t, "index")}
				})).Draw(t, "references"),
			}
		})).Draw(t, "values"),
		Readers: few(bytesText).Draw(t, "readers"),
		Signatures: few(rapid.Custom(func(t *rapid.T) (s Signature) {
			copy(s.SHA256[:], rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "sha256"))
			s.Size, s.Type, s.Date = rapid.Uint64().Draw(t, "size"), bytesText.Draw(t, "type"), anyTime.Draw(t, "date")
			s.Key, s.JWS = bytesText.Draw(t, "key"), bytesText.Draw(t, "jws")
			return s
		})).Draw(t, "signatures"),
		Version:  rapid.Uint64().Draw(t, "version"),
		Created:  anyTime.Draw(t, "created"),
		Modified: anyTime.Draw(t, "modified"),
		By:       bytesText.Draw(t, "by"),
		Redacted: rapid.Bool().Draw(t, "redacted"),
		Import:   rapid.Uint64().Draw(t, "import"),
		Withheld: Withheld{
			Redacted: rapid.Uint64().Draw(t, "upTo"),
			Erased:   rapid.Uint64().Draw(t, "erased"),
			Disavowed: few(rapid.Custom(func(t *rapid.T) Disavowal {
				return Disavowal{
					First: rapid.Uint64().Draw(t, "first"), Last: rapid.Uint64().Draw(t, "last"),
					Reason: bytesText.Draw(t, "why"), At: anyTime.Draw(t, "when"), By: bytesText.Draw(t, "who"),
				}
			})).Draw(t, "disavowed"),
		},
	}
	if rapid.Bool().Draw(t, "open") {
		r.Withheld = Withheld{}
	}
	if rapid.Bool().Draw(t, "withdrawn") {
		r.Tombstone = &Tombstone{bytesText.Draw(t, "reason"), anyTime.Draw(t, "at"), anyID.Draw(t, "replacement")}
	}
	return r
})

// anyNamespace has anything in every field, valid or not.
var anyNamespace = rapid.Custom(func(t *rapid.T) *Namespace {
	return &Namespace{
		Scheme: bytesText.Draw(t, "scheme"),
		Prefix: bytesText.Draw(t, "prefix"),
		Owner:  bytesText.Draw(t, "owner"),
		Title:  bytesText.Draw(t, "title"),
		Minter: Minter{
			Kind:         MinterKind(bytesText.Draw(t, "kind")),
			Host:         bytesText.Draw(t, "host"),
			Port:         rapid.Uint16().Draw(t, "port"),
			IP:           bytesText.Draw(t, "ip"),
			IPPort:       rapid.Uint16().Draw(t, "ipPort"),
			AllowPrivate: rapid.Bool().Draw(t, "allowPrivate"),
			Granularity:  bytesText.Draw(t, "granularity"),
			Template:     bytesText.Draw(t, "template"),
			Seed:         rapid.Uint64().Draw(t, "seed"),
		},
		TTL:         rapid.Uint32().Draw(t, "ttl"),
		Status:      rapid.Int().Draw(t, "status"),
		Persistence: anyPersistence.Draw(t, "persistence"),
		Hosts:       few(bytesText).Draw(t, "hosts"),
		Protocols:   few(bytesText).Draw(t, "protocols"),
		Delegate:    bytesText.Draw(t, "delegate"),
		Checked:     rapid.Bool().Draw(t, "checked"),
		Passthrough: rapid.Bool().Draw(t, "passthrough"),
		Quota:       rapid.Uint64().Draw(t, "quota"),
		Publication: anyPublication.Draw(t, "publication"),
		Grants: few(rapid.Custom(func(t *rapid.T) Grant {
			return Grant{To: bytesText.Draw(t, "to"), Role: Role(bytesText.Draw(t, "role"))}
		})).Draw(t, "grants"),
		Keys: few(rapid.Custom(func(t *rapid.T) SigningKey {
			return SigningKey{
				ID:        bytesText.Draw(t, "id"),
				Algorithm: bytesText.Draw(t, "algorithm"),
				Public:    rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "public"),
				Created:   anyTime.Draw(t, "made"),
				Expires:   anyTime.Draw(t, "expires"),
				Revoked:   anyTime.Draw(t, "revoked"),
				Note:      bytesText.Draw(t, "note"),
			}
		})).Draw(t, "keys"),
		Version:  rapid.Uint64().Draw(t, "version"),
		Created:  anyTime.Draw(t, "created"),
		Modified: anyTime.Draw(t, "modified"),
		By:       bytesText.Draw(t, "by"),
	}
})

// anyPublication has anything in every field, and often nothing at all.
var anyPublication = rapid.Custom(func(t *rapid.T) Publication {
	if rapid.Bool().Draw(t, "none") {
		return Publication{}
	}
	return Publication{
		Zone:    bytesText.Draw(t, "zone"),
		Layout:  Layout(bytesText.Draw(t, "layout")),
		Signing: Signing(bytesText.Draw(t, "signing")),
		Secondaries: few(rapid.Custom(func(t *rapid.T) Secondary {
			return Secondary{Network: bytesText.Draw(t, "network"), Key: bytesText.Draw(t, "key"), Notify: few(bytesText).Draw(t, "notify")}
		})).Draw(t, "secondaries"),
		Records: few(rapid.Custom(func(t *rapid.T) ZoneRecord {
			return ZoneRecord{Name: bytesText.Draw(t, "name"), TTL: rapid.Uint32().Draw(t, "ttl"), Type: RecordType(bytesText.Draw(t, "type")), Data: bytesText.Draw(t, "data")}
		})).Draw(t, "records"),
		Catalog:   bytesText.Draw(t, "catalog"),
		Exact:     rapid.Bool().Draw(t, "exact"),
		Separator: bytesText.Draw(t, "separator"),
		Parts:     rapid.Int().Draw(t, "parts"),
		Servers: few(rapid.Custom(func(t *rapid.T) NameServer {
			return NameServer{bytesText.Draw(t, "name"), few(bytesText).Draw(t, "addresses")}
		})).Draw(t, "servers"),
		Mailbox:  bytesText.Draw(t, "mailbox"),
		Resolver: bytesText.Draw(t, "resolver"),
		Elsewhere: few(rapid.Custom(func(t *rapid.T) Discovery {
			return Discovery{DiscoveryKind(bytesText.Draw(t, "kind")), bytesText.Draw(t, "at")}
		})).Draw(t, "elsewhere"),
	}
})

// What follows is valid. Names are of the toy schemes ab and cd.

var goodID = rapid.Custom(func(t *rapid.T) ID {
	scheme := rapid.SampledFrom([]string{"ab", "cd"}).Draw(t, "scheme")
	return ID{scheme, scheme + ":" + rapid.StringMatching(`[a-z0-9/."\\<é中 -]{1,12}`).Draw(t, "name")}
})

// prose is what people write: anything but control characters and turns.
var prose = rapid.Map(rapid.String(), func(s string) string {
	return strings.Map(func(r rune) rune {
		if proseReason(string(r)) != "" {
			return '\n'
		}
		return r
	}, s)
})

var goodName = rapid.StringMatching(`[A-Za-z0-9."é\\-]{1,12}`)

// goodTime is a time that RFC 3339 can write.
var goodTime = rapid.Custom(func(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "zero") {
		return time.Time{}
	}
	nanoseconds := rapid.SampledFrom([]int64{0, 1, 500_000_000, 999_999_999}).Draw(t, "nanoseconds")
	return time.Unix(rapid.Int64Range(-62_135_596_800, 253_402_300_799).Draw(t, "seconds"), nanoseconds).UTC()
})

var goodURL = rapid.Custom(func(t *rapid.T) string {
	protocol := rapid.SampledFrom(strings.Fields(protocols+" HTTPS Ftp")).Draw(t, "protocol")
	host := rapid.SampledFrom([]string{"example.org", "EXAMPLE.org", "a", "a_b.c-d.org", "192.0.2.1", "[2001:db8::1]", "xn--bcher-kva.example", "1a.x"}).Draw(t, "host")
	port := rapid.SampledFrom([]string{"", ":1", ":8080", ":65535"}).Draw(t, "port")
	path := rapid.StringMatching(`(/[A-Za-z0-9._~!$&'()*+,;=:@\[\]-]{0,8}|/%[0-9a-fA-F]{2}){0,4}`).Draw(t, "path")
	query := rapid.StringMatching(`(\?[A-Za-z0-9/?=&%20\[\]-]{0})?(\?[a-z0-9/?=&:@\[\]-]{0,12})?(#[a-z0-9/?-]{0,5})?`).Draw(t, "query")
	return protocol + "://" + host + port + path + query
})

var goodTarget = rapid.Custom(func(t *rapid.T) Target {
	return Target{
		Service:    rapid.SampledFrom([]Service{N2L, N2C, N2S, N2P}).Draw(t, "service"),
		URL:        goodURL.Draw(t, "url"),
		Type:       rapid.SampledFrom([]string{"", "text/html", "application/ld+json", `text/plain; charset=utf-8; x="a;\"b\""`}).Draw(t, "type"),
		Language:   rapid.SampledFrom([]string{"", "en", "pt-BR", "zh-Hant-TW", "x-own", "i-klingon", "de-1996"}).Draw(t, "language"),
		Order:      rapid.SampledFrom([]uint16{0, DefaultOrder, math.MaxUint16}).Draw(t, "order"),
		Preference: rapid.SampledFrom([]uint16{0, DefaultPreference, math.MaxUint16}).Draw(t, "preference"),
		TTL:        rapid.Uint32Range(0, MaxTTL).Draw(t, "ttl"),
		Status:     rapid.SampledFrom([]int{0, 301, 302, 303, 307, 308, 404, 410}).Draw(t, "status"),
		Partial:    rapid.Bool().Draw(t, "partial"),
	}
})

var goodPersistence = rapid.Custom(func(t *rapid.T) Persistence {
	return Persistence{
		Level:     rapid.SampledFrom([]Level{Unstated, Permanent, Unchanging, Stable, Dynamic, NotGuaranteed}).Draw(t, "level"),
		Until:     rapid.SampledFrom([]string{"", "2040-01-01", "2096-02-29"}).Draw(t, "until"),
		Statement: prose.Draw(t, "statement"),
	}
})

var goodValue = rapid.Custom(func(t *rapid.T) HandleValue {
	return HandleValue{
		Index:       rapid.Uint32Min(1).Draw(t, "index"),
		Type:        goodName.Draw(t, "type"),
		Data:        rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "data"),
		TTL:         rapid.Uint32().Draw(t, "ttl"),
		TTLAbsolute: rapid.Bool().Draw(t, "absolute"),
		Timestamp:   rapid.Uint32().Draw(t, "timestamp"),
		Permissions: Permission(rapid.ByteRange(0, byte(allPermissions)).Draw(t, "permissions")),
		References: few(rapid.Custom(func(t *rapid.T) HandleReference {
			return HandleReference{goodName.Draw(t, "handle"), rapid.Uint32().Draw(t, "index")}
		})).Draw(t, "references"),
	}
})

// goodSecond is a time that is signed or published.
var goodSecond = rapid.Custom(func(t *rapid.T) time.Time {
	return time.Unix(rapid.Int64Range(0, 253_402_300_799).Draw(t, "seconds"), 0).UTC()
})

var goodThumbprint = rapid.StringMatching(`[A-Za-z0-9_-]{43}`)

// goodSignature has the form of one. Nobody made it.
var goodSignature = rapid.Custom(func(t *rapid.T) (s Signature) {
	s.SHA256[rapid.IntRange(0, 31).Draw(t, "at")] = rapid.ByteRange(1, 255).Draw(t, "byte")
	s.Size = rapid.Uint64Range(0, MaxSignedSize).Draw(t, "size")
	s.Type = rapid.SampledFrom([]string{"", "text/html", `text/plain; charset=utf-8; x="a;\"b\""`}).Draw(t, "type")
	s.Date, s.Key = goodSecond.Draw(t, "date"), goodThumbprint.Draw(t, "key")
	s.JWS = rapid.StringMatching(`[A-Za-z0-9_-]{1,9}\.\.[A-Za-z0-9_-]{1,9}`).Draw(t, "jws")
	return s
})

// goodKey has the form of one.
var goodKey = rapid.Custom(func(t *rapid.T) SigningKey {
	k := SigningKey{
		ID:        goodThumbprint.Draw(t, "id"),
		Algorithm: rapid.SampledFrom([]string{KeyED25519, KeyECDSA, KeyRSA}).Draw(t, "algorithm"),
		Public:    rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "public"),
		Created:   time.Unix(rapid.Int64Range(0, 1<<32).Draw(t, "made"), 0).UTC(),
		Note:      rapid.SampledFrom([]string{"", "in the safe"}).Draw(t, "note"),
	}
	if rapid.Bool().Draw(t, "ends") {
		k.Expires = k.Created.Add(time.Hour)
	}
	if rapid.Bool().Draw(t, "is revoked") {
		k.Revoked = goodSecond.Draw(t, "revoked")
	}
	return k
})

var goodRecord = rapid.Custom(func(t *rapid.T) *Record {
	names := rapid.SliceOfNDistinct(goodID, 1, 5, rapid.ID[ID]).Draw(t, "names")
	r := &Record{
		ID:          names[0],
		Aliases:     names[1:],
		State:       rapid.SampledFrom([]State{Active, Reserved, Withdrawn}).Draw(t, "state"),
		Targets:     few(goodTarget).Draw(t, "targets"),
		Metadata:    rapid.MapOfN(rapid.StringMatching(`who|what|when|where|[a-z][a-z0-9._-]{0,9}`), prose, 0, 5).Draw(t, "metadata"),
		Persistence: goodPersistence.Draw(t, "persistence"),
		Values:      rapid.SliceOfNDistinct(goodValue, 0, 3, func(v HandleValue) uint32 { return v.Index }).Draw(t, "values"),
		Readers:     rapid.SliceOfNDistinct(rapid.Map(goodName, func(s string) string { return "group:" + s }), 0, 3, rapid.ID[string]).Draw(t, "readers"),
		Signatures:  rapid.SliceOfNDistinct(goodSignature, 0, 3, func(s Signature) string { return s.JWS }).Draw(t, "signatures"),
		Version:     rapid.Uint64().Draw(t, "version"),
		Created:     goodTime.Draw(t, "created"),
		Modified:    goodTime.Draw(t, "modified"),
		By:          goodName.Draw(t, "by"),
		Redacted:    rapid.Bool().Draw(t, "redacted"),
		Import:      rapid.Uint64().Draw(t, "import"),
	}
	if rapid.Bool().Draw(t, "withholds") {
		r.Withheld.Redacted, r.Withheld.Erased = rapid.Uint64().Draw(t, "upTo"), rapid.Uint64().Draw(t, "erased")
		r.Withheld.Disavowed = few(rapid.Custom(func(t *rapid.T) Disavowal {
			first := rapid.Uint64Range(1, 1<<63).Draw(t, "first")
			return Disavowal{
				First: first, Last: first + rapid.Uint64Range(0, 9).Draw(t, "more"),
				Reason: "because " + prose.Draw(t, "why"), At: goodTime.Draw(t, "when"), By: goodName.Draw(t, "who"),
			}
		})).Draw(t, "disavowed")
	}
	if loud := r.ID.scheme + ":" + strings.ToUpper(r.ID.text[3:]); loud != r.ID.text && rapid.Bool().Draw(t, "loud") {
		r.Spelling = loud
	}
	if r.State == Withdrawn {
		r.Tombstone = &Tombstone{Reason: "because " + prose.Draw(t, "reason"), At: goodTime.Draw(t, "at")}
		if rapid.Bool().Draw(t, "replaced") {
			r.Tombstone.Replacement = ID{"cd", "cd:new " + strconv.Itoa(rapid.Int().Draw(t, "new"))}
		}
	}
	return r
})

var goodMinter = rapid.SampledFrom([]Minter{
	{},
	{Kind: MinterUUID},
	{Kind: MinterNOID, Template: ".reedeedk", Seed: math.MaxUint64},
	{Kind: MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80},
	{Kind: MinterIBI, IP: "150.163.2.174", IPPort: 800, Granularity: "1us"},
	{Kind: MinterIBI, Host: "a.example.org", Port: 8080, IP: "10.0.0.1", IPPort: 1, AllowPrivate: true},
})

var goodNamespace = rapid.Custom(func(t *rapid.T) *Namespace {
	return &Namespace{
		Scheme:      "ibi",
		Prefix:      rapid.SampledFrom([]string{"", "ibi:x", `ibi:"é`}).Draw(t, "prefix"),
		Owner:       goodName.Draw(t, "owner"),
		Title:       prose.Draw(t, "title"),
		Minter:      goodMinter.Draw(t, "minter"),
		TTL:         rapid.Uint32Range(0, MaxTTL).Draw(t, "ttl"),
		Status:      rapid.SampledFrom([]int{0, 301, 302, 303, 307, 308, 404, 410}).Draw(t, "status"),
		Persistence: goodPersistence.Draw(t, "persistence"),
		Hosts:       rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"example.org", ".example.org", "192.0.2.1", "2001:db8::1"}), 0, 4, rapid.ID[string]).Draw(t, "hosts"),
		Protocols:   rapid.SliceOfNDistinct(rapid.SampledFrom(strings.Fields(protocols)), 0, 4, rapid.ID[string]).Draw(t, "protocols"),
		Delegate:    rapid.SampledFrom([]string{"", "https://resolver.example.org/{id}", "http://example.org/a?b={rest}&c={id}"}).Draw(t, "delegate"),
		Quota:       rapid.Uint64().Draw(t, "quota"),
		Passthrough: rapid.Bool().Draw(t, "passthrough"),
		Grants: rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Grant {
			return Grant{
				To:   rapid.SampledFrom([]string{"user:", "group:"}).Draw(t, "kind") + "n" + goodName.Draw(t, "to"),
				Role: rapid.SampledFrom([]Role{RoleReader, RoleEditor, RoleOwner}).Draw(t, "role"),
			}
		}), 0, 3, func(g Grant) string { return g.To }).Draw(t, "grants"),
		Keys:     rapid.SliceOfNDistinct(goodKey, 0, 3, func(k SigningKey) string { return k.ID }).Draw(t, "keys"),
		Version:  rapid.Uint64().Draw(t, "version"),
		Created:  goodTime.Draw(t, "created"),
		Modified: goodTime.Draw(t, "modified"),
		By:       goodName.Draw(t, "by"),
	}
})
