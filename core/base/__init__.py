"""What every room uses: settings, types, events, errors, files, statistics."""
