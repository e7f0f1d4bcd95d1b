// SPDX-License-Identifier: Apache-2.0
// undertow.h: everything a program needs.
#pragma once

#include "undertow/base/dtype.h"
#include "undertow/base/error.h"
#include "undertow/base/shape.h"
#include "undertow/data/dataset.h"
#include "undertow/ops/ops.h"
#include "undertow/runtime/context.h"
#include "undertow/runtime/stats.h"
#include "undertow/tensor/tensor.h"
#include "undertow/train/callback.h"
#include "undertow/train/cell.h"
#include "undertow/train/initializer.h"
#include "undertow/train/layers.h"
#include "undertow/train/loss.h"
#include "undertow/train/metric.h"
#include "undertow/train/model.h"
#include "undertow/train/optimizer.h"
