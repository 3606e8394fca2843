package resolver

// Match tells how well a media type, "" if it is not known, fits what is wanted:
// the fit, the weight in thousandths of the range that decides, and whether that
// range names more than */*. Servers ask it of what they have to offer beside the
// targets. Everything fits where nothing is wanted in particular.
func Match(media string, wanted []Preference) (fit Fit, q int, named bool) {
	g := anything
	if len(wanted) > 0 {
		g = gradeMedia(media, wanted)
	}
	return g.fit, g.q, g.exact > 0
}
