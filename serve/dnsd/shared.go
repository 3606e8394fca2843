package dnsd

// InvalidateAll says that other processes may have committed any changes: everything is
// read again. See Invalidate.
func (z *Zones) InvalidateAll() {
	z.generations.forgetAll()
	z.mu.Lock()
	z.last, z.nsec3Chains = nil, nil
	z.mu.Unlock()
	z.applied.end()
	z.InvalidateNamespaces()
}

// Replace says that a registry which was restored from a backup took the place of this one:
// everything is read again, and serials are those that it says, although its changes have
// lower numbers. See InvalidateAll.
func (z *Zones) Replace() {
	z.lives.Add(1)
	z.InvalidateAll()
}

// end ends keeping track: there are no chains any more of which something is known.
func (a *applied) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on, a.upTo, a.done, a.older, a.by, a.since = false, 0, nil, nil, 0, 0
}
