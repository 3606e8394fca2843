package client

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/stele-id/stele"
)

// PURLHosts returns the hosts whose http names are PURLs in the registry.
func (r *Registry) PURLHosts(ctx context.Context) ([]string, error) {
	return r.purlHosts(ctx, "list hosts", &ask{method: http.MethodGet, path: "purl-hosts", again: true})
}

// AddPURLHosts adds hosts whose http names are PURLs, and returns all of them. Only an
// administrator may.
func (r *Registry) AddPURLHosts(ctx context.Context, hosts ...string) ([]string, error) {
	const op = "add hosts"
	body, err := json.Marshal(map[string][]string{"hosts": hosts})
	if err != nil {
		return nil, tell(op, err)
	}
	return r.purlHosts(ctx, op, &ask{method: http.MethodPost, path: "purl-hosts", body: body, media: jsonType, again: true})
}

func (r *Registry) purlHosts(ctx context.Context, op string, q *ask) ([]string, error) {
	a, err := r.call(ctx, q)
	if err != nil {
		return nil, under(op, stele.ID{}, err)
	}
	var list struct {
		Hosts []string `json:"hosts"`
	}
	if err := a.decode(&list); err != nil {
		return nil, err
	}
	return list.Hosts, r.learnHosts(list.Hosts)
}

// learnHosts makes the client's schemes read names under the hosts.
func (r *Registry) learnHosts(hosts []string) error {
	for scheme := range r.o.Schemes.All() {
		if hosted, ok := scheme.(stele.HostScheme); ok {
			if err := hosted.AddHosts(hosts...); err != nil {
				return unread(err)
			}
		}
	}
	return nil
}
