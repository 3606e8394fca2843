package ask

import (
	"context"
	"net"
	"slices"
	"strings"
)

// Servers returns the names of the name servers of a domain, in order. An error says that they are not known.
func (a *Asker) Servers(ctx context.Context, domain string) ([]string, error) {
	resolver := a.o.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	ctx, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	list, err := resolver.LookupNS(ctx, domain+".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, ns := range list {
		names = append(names, strings.TrimSuffix(strings.ToLower(ns.Host), "."))
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
