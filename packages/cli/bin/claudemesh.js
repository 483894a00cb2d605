#!/bin/sh
":"; //; echo placeholder
