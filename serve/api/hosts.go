package api

import (
	"net/http"

	"github.com/stele-id/stele/auth"
)

// hostsDocument is a list of hosts of PURLs.
type hostsDocument struct {
	Hosts []string `json:"hosts" doc:"Hosts, each a name and perhaps a port." minItems:"1" maxItems:"100" example:"[\"purl.example.org\"]"`
}

func (h *Handler) hostOperations() []operation {
	const group = "Namespaces"
	return []operation{{
		name: "listPURLHosts", method: http.MethodGet, path: "purl-hosts", group: group,
		summary: "List the hosts whose http names are PURLs",
		about:   "They belong to the registry. A client needs them to tell PURLs from other URLs.",
		asks:    anyone, scope: anyScope,
		answers: []answer{{status: 200, about: "The hosts, in order.", value: hostsDocument{}}},
		serve:   h.listHosts,
	}, {
		name: "addPURLHosts", method: http.MethodPost, path: "purl-hosts", group: group,
		summary: "Add hosts whose http names are PURLs",
		about:   "Hosts that are there already change nothing. A host is never taken away: names under it could not be read any more.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{jsonType}, limit: maxBody, value: hostsDocument{}, example: `{"hosts":["purl.example.org"]}`},
		answers: []answer{{status: 200, about: "All hosts, in order.", value: hostsDocument{}}},
		serve:   h.addHosts,
	}}
}

// listHosts answers with all hosts.
func (h *Handler) listHosts(c *call) error {
	return c.reply(http.StatusOK, hostsDocument{h.o.Registrar.Hosts()})
}

// addHosts adds some.
func (h *Handler) addHosts(c *call) error {
	var want hostsDocument
	if err := c.decode(&want); err != nil {
		return err
	}
	if _, err := h.o.Registrar.AddHosts(c.ctx, want.Hosts...); err != nil {
		return err
	}
	return h.listHosts(c)
}
