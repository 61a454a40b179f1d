//! The farrier command: the controller that owns every host's lifecycle, and its command line.
