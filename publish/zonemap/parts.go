package zonemap

import (
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/namespaces"
)

// Parts returns how many parts a name has after the prefix of the namespace in whose zone
// it is published, as the separator of the zone cuts it.
func Parts(schemes *stele.Schemes, ns *stele.Namespace, id stele.ID) int {
	rest := strings.TrimPrefix(id.String(), ns.Prefix)
	// Joints come with the empty one first, which all texts have.
	for _, joint := range namespaces.Joints(schemes, ns.Key()) {
		if after, ok := strings.CutPrefix(rest, joint); ok && joint != "" {
			rest = after
			break
		}
	}
	return strings.Count(rest, ns.Publication.Separator) + 1
}
