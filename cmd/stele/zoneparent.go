package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/publish/zonekey"
)

// parentFlags say how the zone above a zone is asked for its DS records.
type parentFlags struct {
	dns       []string
	unchecked bool

	lookUp func(ctx context.Context, zone string) (parent string, list []string, err error) // for tests; nil: in the DNS
}

func (f *parentFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.dns, "dns", nil, "`address` of a name server that answers about the whole DNS; if it has a port, the parent's servers are asked at that port (default: the system's)")
	flags.BoolVar(&f.unchecked, "unchecked", false, "believe what is said of the parent, and do not ask its name servers")
	_ = cmd.RegisterFlagCompletionFunc("dns", cobra.NoFileCompletions)
}

// find returns the DS records that the parent of a zone has.
func (f *parentFlags) find(ctx context.Context, zone string) (parent string, list []string, err error) {
	if f.lookUp != nil {
		return f.lookUp(ctx, zone)
	}
	ask, err := newDelegations(f.dns)
	if err == nil {
		parent, list, err = ask.DS(ctx, zone)
	}
	if err != nil {
		return "", nil, refuse("zone keys", stele.Unavailable, "zone.parent-unanswered", "the parent of {zone} can't be asked for its DS records: {cause}; name a name server that knows it with --dns, or add --unchecked", zone, err)
	}
	return parent, list, nil
}

// has makes sure that the parent has the DS record of a key.
func (f *parentFlags) has(ctx context.Context, status *zonekey.Status, tag string) error {
	if f.unchecked {
		return nil
	}
	parent, list, err := f.find(ctx, status.Zone)
	if err != nil {
		return err
	}
	tag = strings.TrimLeft(tag, "0")
	var wanted []string // of several digests one is enough
	for _, want := range wantedDS(status) {
		if strings.HasPrefix(want, tag+" ") {
			wanted = append(wanted, want)
		}
	}
	if len(wanted) == 0 || slices.ContainsFunc(wanted, func(want string) bool { return slices.Contains(list, want) }) {
		return nil
	}
	return refuse("zone keys", stele.Conflict, "zone.parent-without-ds", `{parent} does not have the DS record of the key {key} of {zone}, "{record}"; have it published there, and try again. If another way to the parent's servers is right, name it with --dns`, parent, tag, status.Zone, wanted[0])
}

// noOthers makes sure that the parent has only DS records that the zone wants.
func (f *parentFlags) noOthers(ctx context.Context, status *zonekey.Status) error {
	if f.unchecked {
		return nil
	}
	parent, list, err := f.find(ctx, status.Zone)
	if err != nil {
		return err
	}
	for _, have := range list {
		if !slices.Contains(wantedDS(status), have) {
			return refuse("zone keys", stele.Conflict, "zone.parent-with-old-ds", `{parent} still has the DS record "{record}" of {zone}; have it removed there, and try again`, parent, have, status.Zone)
		}
	}
	return nil
}

// wantedDS is the data of the DS records that the parent should have.
func wantedDS(status *zonekey.Status) (list []string) {
	for _, e := range status.DS {
		if _, data, ok := strings.Cut(e.Record, " IN DS "); ok {
			list = append(list, strings.ToUpper(data))
		}
	}
	return list
}

// newDelegations returns a client that asks the DNS about zones and their parents: by the
// name servers given, or by the machine's own.
func newDelegations(servers []string) (*client.Delegations, error) {
	d := &client.Delegations{}
	for _, text := range servers {
		server, err := client.ParseAddress(text)
		if err != nil {
			return nil, err
		}
		d.Servers, d.Port = append(d.Servers, server), server.Port()
	}
	if len(d.Servers) > 0 {
		return d, nil
	}
	var err error
	d.Servers, err = client.SystemAddresses()
	return d, err
}
