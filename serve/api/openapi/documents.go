package openapi

import (
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stele-id/stele/document/apijson"
)

// The types of this file are the JSON form of records and namespaces as package document
// writes and reads it. Nothing is decoded into them: schemas are made of them, for the
// OpenAPI document. A test compares them with what package document does.

// Record is a record as it is shown.
type Record struct {
	ID          string               `json:"id" maxLength:"4096" doc:"The identifier, in canonical form." example:"ark:12345/x1"`
	Spelling    string               `json:"spelling,omitempty" maxLength:"4096" doc:"The owner's own spelling of it."`
	Aliases     []string             `json:"aliases,omitempty" maxItems:"1000" maxLength:"4096" doc:"Other names of the same thing, in any scheme."`
	State       string               `json:"state,omitempty" enum:"reserved,active,withdrawn" default:"active" doc:"How far it is in its life."`
	Tombstone   *tombstoneDocument   `json:"tombstone,omitempty" doc:"Of a withdrawn record."`
	URL         string               `json:"url,omitempty" maxLength:"2000" doc:"Short for one target, in requests." example:"https://example.org/1"`
	Targets     []targetDocument     `json:"targets,omitempty" maxItems:"1000" doc:"Where something about the thing is."`
	Metadata    map[string]string    `json:"metadata,omitempty" maxProperties:"1000" doc:"What it is, in its owner's words: who, what, when, where, and other fields of a-z, 0-9, dot, hyphen and underscore."`
	Persistence *persistenceDocument `json:"persistence,omitempty" doc:"What its owner promises."`
	Values      []valueDocument      `json:"values,omitempty" maxItems:"1000" doc:"Typed values of the Handle System."`
	Readers     []string             `json:"readers,omitempty" maxItems:"1000" maxLength:"255" pattern:"^(user|group):" doc:"Who may see it, as in user:ann or group:staff; without any, all clients."`
	Signatures  []signatureDocument  `json:"signatures,omitempty" maxItems:"16" doc:"What keys of its namespace signed: which bytes the name stands for."`
	Version     uint64               `json:"version,omitempty" readOnly:"true" doc:"1 for the first, and one more with each change."`
	Created     time.Time            `json:"created,omitzero" readOnly:"true"`
	Modified    time.Time            `json:"modified,omitzero" readOnly:"true"`
	By          string               `json:"by,omitempty" maxLength:"255" readOnly:"true" doc:"Who made the last change."`
	Redacted    bool                 `json:"redacted,omitempty" readOnly:"true" doc:"Content was removed by a legal order."`
	Import      uint64               `json:"import,omitempty" readOnly:"true" doc:"The number of the import, or of the revert of one, that made this version."`
	Withheld    *withheldDocument    `json:"withheld,omitempty" readOnly:"true" doc:"Which earlier versions are not shown."`
}

// withheldDocument says which earlier versions of a record are not shown.
type withheldDocument struct {
	Redacted  uint64              `json:"redacted,omitempty" doc:"The highest version that was redacted; those before it are never shown."`
	Erased    uint64              `json:"erased,omitempty" doc:"Of the versions up to this one nothing but an entry is kept."`
	Disavowed []disavowalDocument `json:"disavowed,omitempty" maxItems:"100" doc:"Versions that an owner disavowed."`
}

// disavowalDocument says that versions are not to be used.
type disavowalDocument struct {
	First  uint64    `json:"first" doc:"The first of the versions."`
	Last   uint64    `json:"last" doc:"The last of the versions."`
	Reason string    `json:"reason" maxLength:"1000" doc:"Why, for the public."`
	At     time.Time `json:"at,omitzero"`
	By     string    `json:"by,omitempty" maxLength:"255" doc:"Who disavowed them; not for the public."`
}

// RecordInput is a record as it is sent.
type RecordInput Record

// RecordPatch is a merge patch of a record.
type RecordPatch Record

// RecordLine is a line of many: a record, or a namespace in a field of its own.
type RecordLine Record

// tombstoneDocument says why a record was withdrawn.
type tombstoneDocument struct {
	Reason      string    `json:"reason,omitempty" maxLength:"10000"`
	At          time.Time `json:"at,omitzero"`
	Replacement string    `json:"replacement,omitempty" maxLength:"4096" doc:"The identifier of what to use instead."`
}

// targetDocument is where something about the thing is.
type targetDocument struct {
	Service    string `json:"service,omitempty" pattern:"^N2[A-MO-QS-Z]$" default:"N2L" doc:"What is there: the thing (N2L), its metadata (N2C), its signature (N2S), the statement of its persistence (N2P), or something else by a service of your own."`
	URL        string `json:"url" maxLength:"2000" example:"https://example.org/1"`
	Type       string `json:"type,omitempty" maxLength:"255" doc:"The media type." example:"text/html"`
	Language   string `json:"language,omitempty" maxLength:"255" doc:"As in BCP 47." example:"pt-BR"`
	Order      uint16 `json:"order,omitempty" maximum:"65535" default:"100" doc:"Lower first; those of a higher order are spares."`
	Preference uint16 `json:"preference,omitempty" maximum:"65535" default:"10" doc:"Within an order, lower first."`
	TTL        uint32 `json:"ttl,omitempty" maximum:"2592000" doc:"For how many seconds others may keep it; without it the namespace says."`
	Status     int    `json:"status,omitempty" enum:"301,302,303,307,308,404,410" doc:"Of the redirect; without it the namespace says."`
	Partial    bool   `json:"partial,omitempty" doc:"What follows the name is appended to the URL."`
}

// persistenceDocument is what an owner promises.
type persistenceDocument struct {
	Level     string `json:"level,omitempty" enum:"permanent,unchanging,stable,dynamic,not-guaranteed"`
	Until     string `json:"until,omitempty" format:"date" example:"2040-01-01"`
	Statement string `json:"statement,omitempty" maxLength:"10000" doc:"In words."`
}

// valueDocument is a typed value of the Handle System (RFC 3651, section 3.1).
type valueDocument struct {
	Index       uint32              `json:"index" minimum:"1" maximum:"4294967295"`
	Type        string              `json:"type" minLength:"1" maxLength:"255" example:"URL"`
	Data        []byte              `json:"data,omitempty" maxLength:"87384"`
	TTL         uint32              `json:"ttl,omitempty" maximum:"4294967295" doc:"In seconds; without it 86400, a day. With 0 the value is not cached."`
	TTLAbsolute bool                `json:"ttlAbsolute,omitempty" doc:"The TTL is a date, in seconds since 1970."`
	Timestamp   time.Time           `json:"timestamp,omitzero" doc:"A whole second until 2106."`
	Permissions []string            `json:"permissions,omitempty" maxItems:"4" enum:"public-write,public-read,admin-write,admin-read" doc:"Without any: public-read, admin-write and admin-read."`
	References  []referenceDocument `json:"references,omitempty" maxItems:"1000"`
}

// referenceDocument points at a value of another handle.
type referenceDocument struct {
	Handle string `json:"handle" maxLength:"4096"`
	Index  uint32 `json:"index,omitempty" maximum:"4294967295"`
}

// signatureDocument is a statement that a key of the namespace signed.
type signatureDocument struct {
	SHA256 string    `json:"sha256" pattern:"^[0-9a-fA-F]{64}$" doc:"Of the bytes that the name stands for."`
	Size   uint64    `json:"size,omitempty" maximum:"9007199254740991" doc:"How many bytes there are."`
	Type   string    `json:"type,omitempty" maxLength:"255" doc:"Their media type." example:"text/html"`
	Date   time.Time `json:"date" doc:"When it was signed; a whole second."`
	Key    string    `json:"key" pattern:"^[A-Za-z0-9_-]{43}$" doc:"Thumbprint of the key (RFC 7638)."`
	JWS    string    `json:"jws" maxLength:"1024" doc:"A detached JWS (RFC 7515, appendix F) over all of this and the identifier."`
}

// signingKeyDocument is a public key of a namespace.
type signingKeyDocument struct {
	ID        string    `json:"id" pattern:"^[A-Za-z0-9_-]{43}$" doc:"Its thumbprint (RFC 7638)."`
	Algorithm string    `json:"algorithm" enum:"ED25519,ECDSA,RSA"`
	Public    []byte    `json:"public" maxLength:"1368" doc:"SubjectPublicKeyInfo, DER."`
	Created   time.Time `json:"created" doc:"From when on it signs; a whole second."`
	Expires   time.Time `json:"expires,omitzero" doc:"It signs nothing from then on; what it signed before stays good."`
	Revoked   time.Time `json:"revoked,omitzero" doc:"From then on nothing that it signed is believed."`
	Note      string    `json:"note,omitempty" maxLength:"255" doc:"For people."`
}

type namedHeirDocument struct {
	Registry string `json:"registry" maxLength:"300" doc:"The registry, by the origin of its log." example:"heir.example.org/.log"`
	Address  string `json:"address" maxLength:"2000" doc:"Where its resolver is: a URL that a name is appended to." example:"https://heir.example.org/"`
	Days     int    `json:"days" minimum:"30" maximum:"36500" doc:"On how many different days it has to have asked for a checkpoint of this registry's log, one after the other, without getting one."`
}

type handOverDocument struct {
	State   string    `json:"state" enum:"offered,sealed,forwarded" doc:"Offered: the heir is named. Sealed: no names are minted or registered, and no record changes. Forwarded: requests are redirected to the heir."`
	Heir    string    `json:"heir" maxLength:"300" doc:"The registry that takes over, by the origin of its log."`
	Address string    `json:"address" maxLength:"2000" doc:"Where its resolver is: a URL that a name is appended to."`
	Since   time.Time `json:"since,omitzero" doc:"When the state was reached."`
	By      string    `json:"by,omitempty" maxLength:"255"`
}

type adoptionDocument struct {
	From    string    `json:"from" maxLength:"300" doc:"The registry that gave it, by the origin of its log."`
	To      string    `json:"to,omitempty" maxLength:"300" doc:"The registry that it was given to."`
	Bundle  string    `json:"bundle" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the manifest of the bundle."`
	Change  uint64    `json:"change,omitempty" doc:"Number of the last change that the bundle has."`
	Until   time.Time `json:"until,omitzero" doc:"When that was made."`
	At      time.Time `json:"at,omitzero" doc:"When the bundle was adopted."`
	By      string    `json:"by,omitempty" maxLength:"255"`
	Reading bool      `json:"reading,omitempty" doc:"Names are resolved here, and neither minted nor registered."`
	Silent  bool      `json:"silent,omitempty" doc:"The giver fell silent, and had agreed to that. Records are changed here; names are not made until an administrator says that the giver has ended."`
	Ended   time.Time `json:"ended,omitzero" doc:"When an administrator said so."`
}

// Namespace is a namespace as it is shown.
type Namespace struct {
	Scheme      string               `json:"scheme" example:"ark"`
	Prefix      string               `json:"prefix,omitempty" maxLength:"4096" doc:"What its names begin with; a scheme's root has none." example:"ark:12345/x5"`
	Owner       string               `json:"owner,omitempty" maxLength:"255" doc:"The user whose it is."`
	Title       string               `json:"title,omitempty" maxLength:"10000"`
	Minter      *mintingDocument     `json:"minter,omitempty" doc:"How new names are made."`
	TTL         uint32               `json:"ttl,omitempty" maximum:"2592000" doc:"Of targets that do not say, in seconds."`
	Status      int                  `json:"status,omitempty" enum:"301,302,303,307,308,404,410" doc:"Of redirects whose targets do not say."`
	Persistence *persistenceDocument `json:"persistence,omitempty" doc:"What is promised for all names that do not say."`
	Hosts       []string             `json:"hosts,omitempty" maxItems:"1000" doc:"To which targets may point, .example.org for all below; without any, to all."`
	Protocols   []string             `json:"protocols,omitempty" maxItems:"7" enum:"http,https,ftp,ftps,sftp,rsync,rtsp" doc:"Of targets; without any: http, https and ftp."`
	Delegate    string               `json:"delegate,omitempty" maxLength:"2000" doc:"The resolver that answers instead: a URL with {id} or {rest} in it."`
	Checked     bool                 `json:"checked,omitempty" doc:"Names end in a NOID check character."`
	Passthrough bool                 `json:"passthrough,omitempty" doc:"What follows a registered name, from any character on at which names may be cut, is appended to the URLs of its targets, as if they were partial: in ARKs and PURLs x12 leads to the target of x1, with a 2 appended."`
	Reviewed    bool                 `json:"reviewed,omitempty" doc:"Changes by editors are proposals here and in namespaces below, which an owner approves."`
	Listed      bool                 `json:"listed,omitempty" doc:"The public may list its names: other systems harvest them by OAI-PMH. Namespaces below say so for themselves."`
	Rules       []Rule               `json:"rules,omitempty" maxItems:"200" doc:"For names that are not registered, in order: the first whose pattern fits answers. All examples are tried before a change is written."`
	Handles     *handlesDocument     `json:"handles,omitempty" doc:"How the Handle protocol serves a namespace of handles."`
	Quota       uint64               `json:"quota,omitempty" doc:"How many names there may be, identifiers of records and aliases; without it there is no limit."`
	Publication *publicationDocument `json:"publication,omitempty" doc:"How it is published in the DNS."`
	Grants      []grantDocument      `json:"grants,omitempty" maxItems:"1000" doc:"Who has which role there, and in all below it."`
	Keys        []signingKeyDocument `json:"keys,omitempty" maxItems:"16" doc:"Public keys by which its records, and those of all below it, are signed. None is ever removed."`
	Heirs       []namedHeirDocument  `json:"heirs,omitempty" maxItems:"8" doc:"The registries that may take it over, with all below it, when this one falls silent. One that names none has those of the namespace above it."`
	HandOver    *handOverDocument    `json:"handOver,omitempty" readOnly:"true" doc:"How far it is handed over to another registry."`
	Adoptions   []adoptionDocument   `json:"adoptions,omitempty" maxItems:"100" readOnly:"true" doc:"From which registries it was taken over, the oldest first."`
	Version     uint64               `json:"version,omitempty" readOnly:"true"`
	Created     time.Time            `json:"created,omitzero" readOnly:"true"`
	Modified    time.Time            `json:"modified,omitzero" readOnly:"true"`
	By          string               `json:"by,omitempty" maxLength:"255" readOnly:"true"`
}

// Rule is a rule for names that are not registered.
type Rule struct {
	Pattern    string                `json:"pattern" maxLength:"500" doc:"What follows the namespace's prefix: text with captures in it." example:"HP_{number:digit,7}"`
	IgnoreCase bool                  `json:"ignoreCase,omitempty" doc:"The case of ASCII letters does not count."`
	Title      string                `json:"title,omitempty" maxLength:"10000" doc:"For people."`
	Reason     string                `json:"reason,omitempty" maxLength:"10000" doc:"Told to readers where a target's status says that there is nothing."`
	Targets    []ruleTargetDocument  `json:"targets" maxItems:"20"`
	Examples   []ruleExampleDocument `json:"examples" maxItems:"50" doc:"Names and where they must lead."`
}

// ruleTargetDocument is a target of a rule.
type ruleTargetDocument struct {
	Service    string `json:"service,omitempty" pattern:"^N2[A-MO-QS-Z]$" default:"N2L"`
	URL        string `json:"url,omitempty" maxLength:"2000" doc:"With {capture}, {id} or {rest} in it, after the host; none if the status is 404, 406 or 410." example:"https://example.org/HP/{number}"`
	Type       string `json:"type,omitempty" maxLength:"255" doc:"The media type." example:"text/html"`
	Language   string `json:"language,omitempty" maxLength:"255" doc:"As in BCP 47." example:"pt-BR"`
	Order      uint16 `json:"order,omitempty" maximum:"65535" default:"100" doc:"Lower first; those of a higher order are spares."`
	Preference uint16 `json:"preference,omitempty" maximum:"65535" default:"10" doc:"Within an order, lower first."`
	TTL        uint32 `json:"ttl,omitempty" maximum:"2592000" doc:"For how many seconds others may keep it; without it the namespace says."`
	Status     int    `json:"status,omitempty" enum:"301,302,303,307,308,404,406,410" doc:"Of the redirect; without it the namespace says."`
}

// ruleExampleDocument is a name and what a rule answers for it.
type ruleExampleDocument struct {
	Name string `json:"name" maxLength:"4096" doc:"A name of the namespace, in any spelling."`
	Type string `json:"type,omitempty" maxLength:"255" doc:"The media type that the client accepts; without it, any."`
	Want string `json:"want,omitempty" maxLength:"8192" doc:"The URL to which it must lead; or 404, 406 or 410; or nothing if the rule must not answer."`
}

// handlesDocument says how the Handle protocol serves a namespace.
type handlesDocument struct {
	Off         bool `json:"off,omitempty" doc:"The protocol does not answer for it."`
	PublicWrite bool `json:"publicWrite,omitempty" doc:"Everybody may change values whose permissions say so; without it that permission counts for nothing."`
}

// NamespaceInput is a namespace as it is sent.
type NamespaceInput Namespace

// NamespacePatch is a merge patch of a namespace.
type NamespacePatch Namespace

// UserPatch is a merge patch of the settings of a user.
type UserPatch apijson.UserSettings

// grantDocument gives a role in a namespace.
type grantDocument struct {
	To   string `json:"to" maxLength:"255" pattern:"^(user|group):" example:"user:ann"`
	Role string `json:"role" enum:"reader,editor,owner"`
}

// mintingDocument says how new names of a namespace are made.
type mintingDocument struct {
	Kind         string `json:"kind,omitempty" enum:"ibi,pilin,noid,uuid"`
	Host         string `json:"host,omitempty" maxLength:"253" doc:"Of an IBI's server."`
	Port         uint16 `json:"port,omitempty" maximum:"65535"`
	IP           string `json:"ip,omitempty" maxLength:"255"`
	IPPort       uint16 `json:"ipPort,omitempty" maximum:"65535"`
	AllowPrivate bool   `json:"allowPrivate,omitempty"`
	Granularity  string `json:"granularity,omitempty" maxLength:"255" example:"1s"`
	Template     string `json:"template,omitempty" maxLength:"255" doc:"A NOID template." example:".reedeedk"`
	Seed         uint64 `json:"seed,omitempty" doc:"Decides in which order the names of a template come that begins with r. A new template without it gets a random one."`
	Order        string `json:"order,omitempty" enum:"noid" doc:"The order of the names of a template that begins with r: noid for that of the original program. Without it the order is our own."`
	Expand       uint8  `json:"expand,omitempty" doc:"With the order noid: by how many digits the mask grows when its names are used up."`
}

// publicationDocument says how a namespace is published in the DNS.
type publicationDocument struct {
	Zone      string           `json:"zone,omitempty" maxLength:"255"`
	Layout    string           `json:"layout,omitempty" enum:"names,rules,root"`
	Separator string           `json:"separator,omitempty" maxLength:"255"`
	Parts     int              `json:"parts,omitempty" minimum:"0"`
	Exact     bool             `json:"exact,omitempty" doc:"New names with another number of parts are refused."`
	Servers   []serverDocument `json:"servers,omitempty"`
	Mailbox   string           `json:"mailbox,omitempty" maxLength:"255"`
	Resolver  string           `json:"resolver,omitempty" maxLength:"260"`
	Signing   string           `json:"signing,omitempty" enum:"online,transfer" doc:"How the zone is signed."`

	Secondaries []secondaryDocument `json:"secondaries,omitempty" maxItems:"64" doc:"The servers to which the zone is transferred."`
	Records     []ownRecordDocument `json:"records,omitempty" maxItems:"500" doc:"Resource records of the owner's own, beside those that are made of the registry."`
	Catalog     string              `json:"catalog,omitempty" maxLength:"255" doc:"The catalog zone (RFC 9432) in which the zone is listed for secondaries. Administrators set it." example:"catalog.example.net."`
	Elsewhere   []discoveryDocument `json:"elsewhere,omitempty" doc:"The servers that answer for it instead."`
}

// secondaryDocument is a name server, or a network of them, that may have the zone.
type secondaryDocument struct {
	Network string   `json:"network,omitempty" maxLength:"64" example:"192.0.2.0/24"`
	Key     string   `json:"key,omitempty" maxLength:"255" doc:"Name of a TSIG key."`
	Notify  []string `json:"notify,omitempty" maxItems:"8" doc:"Addresses with ports that are told of changes."`
}

// ownRecordDocument is a resource record of the owner's own.
type ownRecordDocument struct {
	Name string `json:"name" maxLength:"255" doc:"At the zone's name or below it; absolute." example:"mail.paradisec.example."`
	TTL  uint32 `json:"ttl" minimum:"1" maximum:"2592000" doc:"In seconds. All records of a name and type have the same." example:"3600"`
	Type string `json:"type" enum:"A,AAAA,CAA,CNAME,MX,SRV,TXT"`
	Data string `json:"data" maxLength:"4096" doc:"As a master file has it, with absolute names." example:"10 mx.example.org."`
}

// serverDocument is a server of a zone.
type serverDocument struct {
	Name      string   `json:"name,omitempty" maxLength:"255"`
	Addresses []string `json:"addresses,omitempty"`
}

// discoveryDocument says where clients continue for a namespace that other servers answer
// for.
type discoveryDocument struct {
	Kind string `json:"kind,omitempty" enum:"NAPTR,SRV,A,AAAA,URL"`
	At   string `json:"at,omitempty" maxLength:"2000"`
}

// TransformSchema makes the schema of what is shown: always in full, with what the
// system keeps, and without what is short for something.
func (Record) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	delete(s.Properties, "url")
	s.Required = []string{"id", "version", "created", "modified"}
	return s
}

// TransformSchema makes the schema of what is sent.
func (RecordInput) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Required = nil
	return s
}

// TransformSchema makes the schema of what is sent or shown in a line.
func (RecordLine) TransformSchema(r huma.Registry, s *huma.Schema) *huma.Schema {
	most := 1000 // stele.MaxEarlier
	s.Properties["earlier"] = &huma.Schema{Type: huma.TypeArray, MaxItems: &most, Items: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true},
		Description: "In an import with keep: the versions of a new record before this one, the oldest first. Each is a record with modified, and without id, spelling, version, created, redacted, import and withheld."}
	s.Properties["fixed"] = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true,
		Description: "In an import by an administrator, and in an export with namespaces: which bytes the record stands for, for ever, where a protocol promises that. Their digest in sha256, in hexadecimal, with size, or absent; and at, when that was said."}
	s.Properties["progress"] = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true,
		Description: "Beside a namespace: how far its minter is. How many names of the template are given, the counters of the original order, the last date that is taken, and the earlier templates of the prefix."}
	s.Properties["namespace"] = r.Schema(reflect.TypeFor[NamespaceInput](), true, "")
	s.Required = nil
	return s
}

// TransformSchema makes the schema of a merge patch.
func (RecordPatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema { return patchOf(s) }

// TransformSchema makes the schema of what is sent.
func (NamespaceInput) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Required = nil
	return s
}

// TransformSchema makes the schema of a merge patch.
func (NamespacePatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return patchOf(s)
}

// TransformSchema makes the schema of a merge patch.
func (UserPatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema { return patchOf(s) }

// patchOf returns the schema of a merge patch for a schema: no member is required, and null
// removes a member.
func patchOf(s *huma.Schema) *huma.Schema {
	s.Required = nil
	for name, property := range s.Properties {
		s.Properties[name] = &huma.Schema{
			Description: property.Description,
			AnyOf:       []*huma.Schema{patchValue(property), {Type: "null"}},
		}
	}
	return s
}

// patchValue returns the schema of a member of a patch. An object can be patched itself, and
// then need not have all of its members.
func patchValue(s *huma.Schema) *huma.Schema {
	if s.Ref != "" || s.Type == huma.TypeObject {
		return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	}
	value := *s
	value.Description, value.Default, value.ReadOnly = "", nil, false
	return &value
}
