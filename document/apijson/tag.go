package apijson

import (
	"strconv"

	"github.com/stele-id/stele"
)

// EntityTag returns the entity tag of a version of a record or a namespace, in a registry with these generations. After a restore the same number of a
// version may come again with other contents, so from then on the tag names the generation, too.
func EntityTag(of stele.Generations, version uint64) string {
	tag := `"v` + strconv.FormatUint(version, 10)
	if last := of.Last(); last.Number > 1 {
		tag += "." + last.ID.String()[:8]
	}
	return tag + `"`
}
