package ways

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/resolver"
)

// Local resolves names by a registry on this machine, as the public sees it. The registry is
// open only while a name is looked up, so that others can use it.
type Local struct {
	Schemes *stele.Schemes
	Place   string // where the registry is, for messages
	Open    func(ctx context.Context) (*Opened, error)
}

// Opened is an open registry. Close must be called when it is not used any more.
type Opened struct {
	Resolver *resolver.Resolver
	Records  interface {
		Record(ctx context.Context, name stele.ID) (*stele.Record, error)
	}
	Close func() error
}

// Resolve finds where a name leads.
func (w *Local) Resolve(ctx context.Context, q client.Request) (res client.Result, err error) {
	steps := []client.Step{}
	res, err = w.ask(ctx, q, &steps)
	if err != nil {
		res = client.Result{}
	}
	if q.Trace {
		res.Trace = &client.Trace{Name: q.Name, Service: q.Service, Accept: q.Accept, Steps: steps}
		if err != nil {
			res.Trace.Error = err.Error()
		} else {
			res.Trace.Outcome = res.String()
		}
	}
	return res, err
}

func (w *Local) ask(ctx context.Context, q client.Request, steps *[]client.Step) (res client.Result, err error) {
	x, err := w.Schemes.Explain(q.Name)
	if err != nil {
		return res, err
	}
	r, err := w.Open(ctx)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	c := client.ComponentsOf(x.Parts)
	found, err := r.Resolver.Resolve(ctx, localRequest(x.ID, q, c))
	for _, s := range found.Trace {
		*steps = append(*steps, client.Step{Note: fmt.Sprintf("in %s, %s: %s", w.Place, s.Name, s.Result)})
	}
	if err != nil {
		return res, err
	}
	if names := string(q.Service); names == "N2N" || names == "N2Ns" {
		return localNames(&found, q.Service)
	}
	if res, err = localResult(&found, q.Service); err == nil {
		c.Place(&res)
	}
	return res, err
}

// Signed returns the signatures of what a name stands for, and the keys of its namespace.
// NotFound if the record has no signatures, and Conflict if they are for another of its names.
func (w *Local) Signed(ctx context.Context, id stele.ID) (list []stele.Signature, keys client.Keys, err error) {
	r, err := w.Open(ctx)
	if err != nil {
		return nil, keys, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	record, err := r.Records.Record(ctx, id)
	if err != nil {
		return nil, keys, err
	}
	if len(record.Signatures) == 0 {
		return nil, keys, ErrUnsigned
	}
	if record.ID != id {
		return nil, keys, stele.Errorf("verify", id, stele.Conflict, "get.signed-by-other-name", "the signatures are for {identifier}, another name of the same thing; get it by that name", record.ID)
	}
	keys = client.Keys{From: "the registry in " + w.Place, By: client.ByRegistry}
	keys.List, err = r.Resolver.SigningKeys(ctx, id)
	return record.Signatures, keys, err
}

// ErrUnsigned is the error of a record that has no signatures.
var ErrUnsigned = stele.Messagef("signature.missing-at-resolver", "it has no signature")

// localNames answers N2N, with a URN, and N2Ns, with all names.
func localNames(found *resolver.Resolution, service stele.Service) (res client.Result, err error) {
	var list []string
	if found.Record != nil && found.Kind != resolver.Tombstone {
		for _, id := range found.Record.Names() {
			if name := id.String(); service == "N2Ns" || strings.HasPrefix(name, "urn:") {
				list = append(list, name)
			}
		}
	}
	if len(list) == 0 {
		return res, stele.Errorf("resolve", found.ID, stele.NotFound, "resolve.nothing-for-service", "there is nothing for {service}", service)
	}
	res = client.Result{ID: found.ID, Found: client.FoundLocation, Location: list[0], Service: service, TTL: found.TTL, Via: client.ViaLocal}
	if service == "N2Ns" {
		res.Others = list[1:]
	}
	return res, nil
}

// localService is the service of the targets that answer a request for another: a list of
// locations, or the thing itself, are answered from the locations.
func localService(service stele.Service) stele.Service {
	switch service {
	case "N2Ls", "N2R", "N2Rs", "N2N", "N2Ns":
		return stele.N2L
	case "N2Cs":
		return stele.N2C
	}
	return service
}

// localRequest is the request to the resolver. Signatures have no media types here.
func localRequest(id stele.ID, q client.Request, c client.Components) resolver.Request {
	request := resolver.Request{
		ID: id, Given: q.Name, Query: c.Q, Component: true, Service: localService(q.Service), Protocols: q.Protocols, OnlyProtocols: q.OnlyProtocols, Trace: q.Trace,
	}
	if q.Service != stele.N2S {
		request.Accept = q.Accept
	}
	return request
}

// localResult turns an answer into the result that other ways give.
func localResult(found *resolver.Resolution, service stele.Service) (client.Result, error) {
	refuse := func(kind stele.Kind, code, text string, args ...any) (client.Result, error) {
		return client.Result{}, stele.Errorf("resolve", found.ID, kind, code, text, args...)
	}
	switch found.Kind {
	case resolver.Redirect, resolver.Delegation:
	case resolver.Tombstone:
		t := found.Tombstone
		if t.Replacement.IsValid() {
			return refuse(stele.Gone, "resolve.withdrawn-replaced", "it was withdrawn: {reason}; use {replacement}", t.Reason, t.Replacement)
		}
		return refuse(stele.Gone, "resolve.withdrawn", "it was withdrawn: {reason}", t.Reason)
	case resolver.Gone:
		if found.Rule != nil && found.Rule.Reason != "" {
			kind := stele.NotFound
			if found.Status == 410 {
				kind = stele.Gone
			}
			return refuse(kind, "resolve.rule-says-gone", "a rule of {namespace} says that there is nothing: {reason}", found.Namespace.Key(), found.Rule.Reason)
		}
		if found.Status == 404 || found.Status == 406 {
			return refuse(stele.NotFound, "resolve.unavailable-at-present", "its owner says that it is not to be had at present")
		}
		return refuse(stele.Gone, "resolve.gone", "its owner says that it is gone")
	default:
		if service == stele.N2S && found.Record != nil && len(found.Record.Signatures) > 0 {
			return refuse(stele.NotFound, "resolve.signatures-without-address", "its signatures are in the registry itself, and have no address of their own; 'stele show' prints them, and 'stele get --verify' checks them")
		}
		return refuse(stele.NotFound, "resolve.nothing-registered-for-service", "it is registered, but there is nothing for {service} ({description}); 'stele show' prints what is known of it", service, wording.Service(service))
	}
	t := stele.Target{URL: found.URL}
	res := client.Result{
		ID: found.ID, Found: client.FoundLocation, Location: found.URL, Service: service, Protocol: t.Protocol(),
		TTL: found.TTL, Via: client.ViaLocal,
	}
	if found.Kind == resolver.Delegation {
		res.Note = "another resolver knows the name; this is its address there"
	}
	for i := range found.Targets {
		other := &found.Targets[i]
		switch first := &found.Targets[0]; {
		case i == 0:
			res.Type = other.Type
		case other.URL != res.Location:
			res.Others = append(res.Others, other.URL)
			if other.Order == first.Order && other.Preference == first.Preference {
				res.Equals = append(res.Equals, other.URL)
			}
		}
	}
	return res, nil
}
