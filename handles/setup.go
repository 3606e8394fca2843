package handles

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rsa"
	"encoding/json"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/handlejson"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/wire/hdl"
)

// Setup is what it takes to serve a prefix.
type Setup struct {
	Prefix    string       // 20.500.12345
	Addresses []netip.Addr // public addresses of the servers; all of them answer from this registry
	Mirrors   []netip.Addr // of servers that only answer
	Port      uint16       // of UDP and TCP; 2641 if 0
	HTTPPort  uint16       // of the protocol in HTTP; 0: not offered
	About     string       // of the site, for people

	Organisation, Contact, Mail string // for the registrar of the prefix

	// AdminKey is the public key of the prefix's administrator, as an HS_PUBKEY value has it; see [NewAdminKey]. The
	// record of the prefix is made with it. A prefix that has a record keeps the key that the record has, and needs none.
	AdminKey []byte

	Random io.Reader
}

// NeedsAdminKey is the code of the error by which [Service.SetUp] asks for the key of the administrator. Nothing is
// written then: the caller makes a key, keeps it, and calls again.
const NeedsAdminKey = "handle.admin-key-missing"

// Bounds of a set-up. So many servers fit into a value of type HS_SITE.
const (
	maxServers   = 100
	maxSetupText = 1000 // bytes
)

// Made is what [Service.SetUp] made.
type Made struct {
	Site   hdl.Site
	Bundle []byte // a zip for the registrar of the prefix
	Admin  Identity
	Key    []byte        // the public key of the administrator, which the record has; nil: none
	Record *stele.Record // 0.NA/prefix
}

// Indexes of the values of a prefix's record, as the reference numbers them.
const (
	siteIndex  = 1
	adminIndex = 100
	listIndex  = 200
	keyIndex   = 300
)

const (
	defaultPort = 2641
	keyBits     = 2048 // as the reference makes them; old clients know no longer ones
)

// SetUp makes this registry a site of the Handle System and sets up a prefix: the key of the site, if there is none
// yet, and the record 0.NA/prefix with its site and its administrator. The namespace must be there. Called
// again it brings the site up to date, and leaves administrators as they are. Only an administrator of the
// registry may, whom the context names.
func (s *Service) SetUp(ctx context.Context, o Setup) (*Made, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	id, err := s.Parse(authorityMark + o.Prefix)
	if err != nil {
		return nil, err
	}
	if ns, err := s.Namespace(ctx, id); err != nil {
		return nil, err
	} else if ns == nil {
		return nil, stele.Errorf("set up handles", id, stele.NotFound, "handle.namespace-missing", "there is no namespace {prefix}/ that the Handle protocol serves; add it with 'stele ns add {prefix}/'", o.Prefix)
	}
	rec, err := s.o.Registrar.Get(ctx, id)
	isNew := stele.KindOf(err) == stele.NotFound
	switch {
	case isNew && o.AdminKey == nil:
		return nil, stele.Errorf("set up handles", id, stele.Invalid, "handle.admin-key-missing", "{prefix} has no administrator yet; send the public key of one", o.Prefix)
	case err != nil && !isNew:
		return nil, err
	}
	site, own, err := s.setSite(ctx, &o)
	if err != nil {
		return nil, err
	}
	made := &Made{Site: *site, Admin: Identity{Handle: Bare(id), Index: keyIndex}, Key: o.AdminKey}
	if isNew {
		made.Record, err = s.o.Registrar.Register(ctx, &stele.Record{ID: id, State: stele.Active, Values: s.prefixValues(id, site, &o)})
	} else {
		made.Key = adminKey(rec)
		made.Record, err = s.o.Registrar.Update(ctx, id, rec.Version, func(next *stele.Record) error {
			next.Values = s.withSites(next.Values, site, &o, own)
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	made.Bundle, err = bundle(&o, site, made.Key, s.o.Now())
	return made, err
}

// BarePrefix returns a prefix of handles as [Setup] has it, of any way to write it: hdl:20.500.12345/ is 20.500.12345.
func BarePrefix(text string) string {
	return strings.TrimSuffix(strings.TrimPrefix(text, destination.HandleMark), "/")
}

// check finds what is wrong with a set-up before anything is written.
func (o *Setup) check() error {
	wrong := func(code, text string, args ...any) error {
		return stele.Errorf("set up handles", stele.ID{}, stele.Invalid, code, text, args...)
	}
	if len(o.Addresses) == 0 {
		return wrong("handle.address-missing", "say at which public address the server answers the Handle protocol")
	}
	if n := len(o.Addresses) + len(o.Mirrors); n > maxServers {
		return wrong("handle.too-many-servers", "a site may have {limit} servers and mirrors, and these are {count}; name fewer", maxServers, n)
	}
	for _, text := range []string{o.About, o.Organisation, o.Contact, o.Mail} {
		if len(text) > maxSetupText {
			return wrong("handle.setup-text-too-long", "a description, an organisation, a contact and its mail address may each have {limit} bytes; shorten it", maxSetupText)
		}
	}
	if o.AdminKey == nil {
		return nil
	}
	if _, err := hdl.ParsePublicKey(o.AdminKey); err != nil {
		return wrong("handle.admin-key-invalid", "the key of the administrator is not a public key of the Handle System: {cause}", err)
	}
	return nil
}

// NewAdminKey makes a key for the administrator of a prefix: the private one as a key file, of which the caller has the
// only copy, and the public one for [Setup].
func NewAdminKey(random io.Reader) (private, public []byte, err error) {
	key, err := newKey(random)
	if err != nil {
		return nil, nil, err
	}
	half := key.Public()
	return hdl.AppendKeyFile(nil, key), half.Append(nil), nil
}

// newKey makes a key pair.
func newKey(random io.Reader) (*hdl.PrivateKey, error) {
	key, err := rsa.GenerateKey(random, keyBits)
	if err != nil {
		return nil, stele.AsError("make a key", err)
	}
	return &hdl.PrivateKey{RSA: key}, nil
}

// setSite makes the site, or brings it up to date. Its number grows when something of it changes, so that clients
// and registrars know which one is newer. Own are the digests of the keys that it has or had.
func (s *Service) setSite(ctx context.Context, o *Setup) (site *hdl.Site, own []string, err error) {
	kept, err := s.o.Registrar.SetHandleSite(ctx, func(kept *registrar.HandleSite) error {
		var key hdl.PrivateKey
		if kept.Key == nil {
			fresh, err := newKey(o.Random)
			if err != nil {
				return err
			}
			key, kept.Key = *fresh, hdl.AppendKeyFile(nil, fresh)
		} else if key, err = hdl.ParseKeyFile(kept.Key, nil); err != nil {
			return err
		}
		serial := uint16(1)
		if before, err := hdl.ParseSite(kept.Octets); err == nil {
			serial = before.Serial
		}
		site = newSite(o, &key, serial, o.Addresses, hdl.SitePrimary, hdl.InterfaceBoth)
		if octets := site.Append(nil); kept.Octets != nil && !bytes.Equal(octets, kept.Octets) {
			site.Serial = nextSerial(serial)
		}
		noteKeys(kept)
		kept.Octets = site.Append(nil)
		noteKeys(kept)
		return nil
	})
	return site, kept.Keys, err
}

// nextSerial returns the number after another one; ffff stands for an unknown site.
func nextSerial(serial uint16) uint16 {
	if serial++; serial == hdl.UnknownSerial {
		serial = 1
	}
	return serial
}

// newSite returns a site with a server at each address. UDP is for queries only, as the reference has it.
func newSite(o *Setup, key *hdl.PrivateKey, serial uint16, at []netip.Addr, flags uint8, kind hdl.InterfaceType) *hdl.Site {
	public := key.Public()
	port := uint32(o.Port)
	if port == 0 {
		port = defaultPort
	}
	site := &hdl.Site{Version: hdl.Latest(), Serial: serial, Flags: flags, HashOption: hdl.HashAll}
	if o.About != "" {
		site.Attributes = []hdl.Attribute{{Name: "desc", Value: o.About}}
	}
	for i, addr := range at {
		server := hdl.Server{ID: uint32(i + 1), Key: public.Append(nil), Interfaces: []hdl.Interface{
			{Type: kind, Protocol: hdl.TCP, Port: port}, {Type: hdl.InterfaceQuery, Protocol: hdl.UDP, Port: port}}}
		if o.HTTPPort != 0 {
			server.Interfaces = append(server.Interfaces, hdl.Interface{Type: kind, Protocol: hdl.HTTP, Port: uint32(o.HTTPPort)})
		}
		server.SetAddr(addr)
		site.Servers = append(site.Servers, server)
	}
	return site
}

// prefixValues returns the values of the record of a prefix.
func (s *Service) prefixValues(id stele.ID, site *hdl.Site, o *Setup) []stele.HandleValue {
	handle := Bare(id)
	admin := hdl.Admin{Permissions: allRights, Identity: hdl.Reference{Handle: handle, Index: listIndex}}
	values := s.withSites(nil, site, o, nil)
	return append(values,
		s.value(adminIndex, typeAdmin, admin.Append(nil)),
		s.value(listIndex, typeList, hdl.AppendReferences(nil, []hdl.Reference{{Handle: handle, Index: keyIndex}})),
		s.value(keyIndex, TypePublicKey, o.AdminKey))
}

// allRights are the rights of 12 digits.
const allRights hdl.AdminPermissions = 1<<12 - 1

func (s *Service) value(index uint32, kind string, data []byte) stele.HandleValue {
	return stele.HandleValue{Index: index, Type: kind, Data: data, TTL: stele.DefaultHandleTTL, Permissions: stele.DefaultPermissions,
		Timestamp: uint32(min(max(s.o.Now().Unix(), 0), 1<<32-1))}
}

// withSites returns values with those of the sites replaced. Own are the digests of the keys of sites that are ours.
func (s *Service) withSites(values []stele.HandleValue, site *hdl.Site, o *Setup, own []string) []stele.HandleValue {
	sites := []stele.HandleValue{s.value(0, typeSite, site.Append(nil))}
	if len(o.Mirrors) > 0 {
		mirror := *site
		mirror.Flags, mirror.Servers = 0, nil
		for i, addr := range o.Mirrors {
			server := site.Servers[0]
			server.ID, server.Interfaces = uint32(i+1), slices.Clone(server.Interfaces)
			for k := range server.Interfaces {
				server.Interfaces[k].Type = hdl.InterfaceQuery
			}
			server.SetAddr(addr)
			mirror.Servers = append(mirror.Servers, server)
		}
		sites = append(sites, s.value(0, typeSite, mirror.Append(nil)))
	}
	others := slices.DeleteFunc(slices.Clone(values), func(v stele.HandleValue) bool { return isOwnSite(&v, own) })
	for i := range sites { // values of others keep their indexes
		for sites[i].Index = siteIndex; at(others, sites[i].Index) >= 0 || at(sites[:i], sites[i].Index) >= 0; sites[i].Index++ {
		}
	}
	return append(sites, others...)
}

const typeSite = "HS_SITE"

// adminKey returns the first public key of a prefix's record; nil if it has none.
func adminKey(rec *stele.Record) []byte {
	for _, v := range rec.Values {
		if destination.HasType(v.Type, TypePublicKey) {
			return v.Data
		}
	}
	return nil
}

// SiteMissing is the code of the error that [NoSite] returns.
const SiteMissing = "handle.site-missing"

// NoSite returns the error of a registry that is not a site of the Handle System.
func NoSite(op string) error {
	return stele.Errorf(op, stele.ID{}, stele.NotFound, "handle.site-missing", "this registry is not a site of the Handle System; set it up with 'stele ns add PREFIX --handle-server'")
}

// RollSite replaces the key of the site. Clients that still know the former one by its number get answers that it
// signed. The records of all prefixes that name the site, by this key or an earlier one, are brought up to date.
func (s *Service) RollSite(ctx context.Context, random io.Reader) (*hdl.Site, error) {
	fresh, err := newKey(random)
	if err != nil {
		return nil, err
	}
	public := fresh.Public()
	next := public.Append(nil)
	var site hdl.Site
	kept, err := s.o.Registrar.SetHandleSite(ctx, func(kept *registrar.HandleSite) error {
		if kept.Key == nil {
			return NoSite("roll handle key")
		}
		if site, err = hdl.ParseSite(kept.Octets); err != nil {
			return err
		}
		noteKeys(kept)
		kept.Former, kept.FormerSerial = kept.Key, site.Serial
		site.Serial = nextSerial(site.Serial)
		for i := range site.Servers {
			site.Servers[i].Key = next
		}
		kept.Key, kept.Octets = hdl.AppendKeyFile(nil, fresh), site.Append(nil)
		noteKeys(kept)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &site, s.replaceKeys(ctx, kept.Keys, next, site.Serial)
}

// bundle returns the zip that a registrar of prefixes asks for: the site in both forms, the public key of the
// administrator, and whom to ask. The reference calls it sitebndl.zip.
func bundle(o *Setup, site *hdl.Site, public []byte, now time.Time) ([]byte, error) {
	octets := site.Append(nil)
	shown, err := json.MarshalIndent(handlejson.Describe(typeSite, octets).Value, "", "  ")
	if err != nil {
		return nil, stele.AsError("set up handles", err)
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, file := range []struct {
		name string
		data []byte
	}{
		{"siteinfo.json", append(shown, '\n')},
		{"siteinfo.bin", octets},
		{"admpub.bin", public},
		{"contactdata.dct", contact(o)},
	} {
		f, err := w.CreateHeader(&zip.FileHeader{Name: file.name, Method: zip.Deflate, Modified: now})
		if err == nil {
			_, err = f.Write(file.data)
		}
		if err != nil {
			return nil, stele.AsError("set up handles", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, stele.AsError("set up handles", err)
	}
	return b.Bytes(), nil
}

// contact returns whom to ask, in the form of the reference's files.
func contact(o *Setup) []byte {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ")
	var b bytes.Buffer
	b.WriteString("{\n")
	for _, f := range [][2]string{{"org_name", o.Organisation}, {"contact_name", o.Contact}, {"contact_email", o.Mail}} {
		b.WriteString(`  "` + f[0] + `" = "` + quote.Replace(f[1]) + "\"\n")
	}
	b.WriteString("}\n")
	return b.Bytes()
}
