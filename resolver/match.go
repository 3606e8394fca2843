package resolver

import "github.com/stele-id/stele/ddds"

// Match tells how well a media type, "" if it is not known, fits what is wanted:
// the fit, the weight in thousandths of the range that decides, and whether that
// range names more than */*. Servers ask it of what they have to offer beside the
// targets. Everything fits where nothing is wanted in particular.
func Match(media string, wanted []Preference) (fit Fit, q int, named bool) {
	g := ddds.GradeType(media, wanted)
	return g.Fit, g.Q, g.Exact > 0
}
